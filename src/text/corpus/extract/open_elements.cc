#include "corpus/extract/open_elements.h"

#include "corpus/extract/html_names.h"

namespace teratron {
namespace {

using Groups = std::uint32_t;
constexpr std::size_t kNotOpen = SIZE_MAX;
constexpr std::uint32_t kAnyName = 0;

constexpr Groups kFormatting = 1U << 0, kMarker = 1U << 1, kCell = 1U << 2, kTable = 1U << 3, kTemplate = 1U << 4;
constexpr Groups kSpecial = 1U << 5, kButton = 1U << 6, kList = 1U << 7, kListItem = 1U << 8, kTerm = 1U << 9;
constexpr Groups kParagraph = 1U << 10, kRuby = 1U << 11, kRubyText = 1U << 12, kOption = 1U << 13;
constexpr Groups kEndsParagraph = 1U << 14, kEndsItsLike = 1U << 15, kBetweenItems = 1U << 16, kPartOfTable = 1U << 17;
constexpr Groups kNeverOpen = 1U << 18, kOptionGroup = 1U << 19, kEndsToScope = 1U << 20, kHeading = 1U << 21;
constexpr Groups kEndIsImplied = kParagraph | kListItem | kTerm | kRubyText | kOption | kOptionGroup;

Groups groups_of(std::string_view name) {
  Groups groups = 0;
  const auto add = [&](bool is_in, Groups group) { groups |= is_in ? group : 0; };
  add(html::is_formatting(name), kFormatting);
  add(html::is_marker(name), kMarker);
  add(html::is_cell(name), kCell);
  add(html::is_special(name), kSpecial);
  add(html::ends_paragraph(name), kEndsParagraph);
  add(html::is_never_open(name), kNeverOpen);
  add(html::is_of_table(name) && name != "table", kPartOfTable);
  add(html::is_ruby_text(name), kRubyText);
  add(html::ends_paragraph(name) || name == "applet" || name == "button" || name == "marquee" || name == "object",
      kEndsToScope);
  add(html::is_heading(name), kHeading);
  add(name == "table", kTable);
  add(name == "template", kTemplate);
  add(name == "button", kButton);
  add(name == "ol" || name == "ul", kList);
  add(name == "li", kListItem);
  add(name == "dd" || name == "dt", kTerm);
  add(name == "p", kParagraph);
  add(name == "ruby", kRuby);
  add(name == "option", kOption);
  add(name == "optgroup", kOptionGroup);
  add(name == "a" || name == "nobr", kEndsItsLike);
  add(name == "address" || name == "div" || name == "p", kBetweenItems);
  return groups;
}

}  // namespace

OpenElements::Element OpenElements::element_of(std::string_view name) {
  if (html::is_heading(name)) name = "h1";  // the end tag of any heading closes any heading
  const auto [found, is_new] = known_.try_emplace(std::string(name));
  if (is_new) found->second = {.name = static_cast<std::uint32_t>(known_.size()), .groups = groups_of(name)};
  return found->second;
}

void OpenElements::erase_at(std::size_t i) {
  tables_ -= open_[i].is(kTable) ? 1 : 0;
  formatting_ -= open_[i].is(kFormatting) ? 1 : 0;
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
}

// Closes element i and those in it. Formatting outside of markers is opened again, so it stays.
void OpenElements::close_from(std::size_t i) {
  bool is_in_marker = false;
  std::size_t kept = i;
  for (std::size_t at = i; at < open_.size(); ++at) {
    const Element one = open_[at];
    is_in_marker |= one.is(kMarker);
    if (one.is(kFormatting) && !is_in_marker) {
      open_[kept++] = one;
      continue;
    }
    tables_ -= one.is(kTable) ? 1 : 0;
    formatting_ -= one.is(kFormatting) ? 1 : 0;
  }
  open_.resize(kept);
}

// The innermost such element, unless one of `stops` is met first.
std::size_t OpenElements::find(std::uint32_t name, Groups stops) const {
  for (std::size_t i = open_.size(); i > 0; --i) {
    if (open_[i - 1].name == name) return i - 1;
    if (open_[i - 1].is(stops)) return kNotOpen;
  }
  return kNotOpen;
}
std::size_t OpenElements::find_group(Groups group, Groups stops) const {
  for (std::size_t i = open_.size(); i > 0; --i) {
    if (open_[i - 1].is(group)) return i - 1;
    if (open_[i - 1].is(stops)) return kNotOpen;
  }
  return kNotOpen;
}

// Closes the innermost table's open cell if it has that name.
void OpenElements::close_cell(std::uint32_t name) {
  const std::size_t cell = find_group(kCell, kTable | kTemplate);
  if (cell != kNotOpen && (name == kAnyName || open_[cell].name == name)) close_from(cell);
}

// Closes the cell that ends with its row.
void OpenElements::close_row() {
  close_cell(element_of("td").name);
  close_cell(element_of("th").name);
}

void OpenElements::end_innermost(std::uint32_t name, Groups stops) {
  if (const std::size_t found = find(name, stops); found != kNotOpen) close_from(found);
}

// Closes what a start tag closes.
void OpenElements::close_those_before(const Element& element) {
  const auto close_group = [&](Groups group, Groups stops) {
    if (const std::size_t found = find_group(group, stops); found != kNotOpen) close_from(found);
  };
  if (element.is(kPartOfTable)) close_cell(kAnyName);
  if (element.is(kTable)) close_group(kTable, kMarker);  // directly within another one
  for (const Groups item : {kListItem, kTerm}) {
    if (!element.is(item)) continue;
    std::size_t i = open_.size();  // the innermost special element, except kBetweenItems
    while (i > 0 && !open_[i - 1].is(item) && (!open_[i - 1].is(kSpecial) || open_[i - 1].is(kBetweenItems))) --i;
    if (i > 0 && open_[i - 1].is(item)) close_from(i - 1);
  }
  if (element.is(kEndsParagraph)) close_group(kParagraph, kMarker | kTable | kButton);
  if (element.is(kButton)) close_group(kButton, kMarker | kTable);
  if (element.is(kHeading) && !open_.empty() && open_.back().is(kHeading)) open_.pop_back();
  if (element.is(kRubyText) && find_group(kRuby, kMarker | kTable) != kNotOpen) {
    while (open_.back().is(kEndIsImplied)) open_.pop_back();
  }
  if (element.is(kOption | kOptionGroup) && !open_.empty() && open_.back().is(kOption)) open_.pop_back();
  if (element.is(kEndsItsLike)) {
    if (const std::size_t other = find(element.name, kMarker | kTable); other != kNotOpen) erase_at(other);
  }
}

void OpenElements::start(const std::string& name) {
  const Element element = element_of(name);
  if (element.is(kPartOfTable) && tables_ == 0) return;  // it is ignored
  close_those_before(element);
  if (element.is(kNeverOpen)) return;
  open_.push_back(element);
  tables_ += element.is(kTable) ? 1 : 0;
  formatting_ += element.is(kFormatting) ? 1 : 0;
}

void OpenElements::end(const std::string& name) {
  const Element element = element_of(name);
  if (element.is(kCell)) return close_cell(element.name);
  if (name == "tr") return close_row();
  if (element.is(kNeverOpen)) return;
  if (element.is(kTemplate)) return end_innermost(element.name, 0);
  if (element.is(kTable)) return end_innermost(element.name, kTemplate);
  if (element.is(kParagraph)) return end_innermost(element.name, kMarker | kTable | kButton);
  if (element.is(kListItem)) return end_innermost(element.name, kMarker | kTable | kList);
  if (element.is(kFormatting) || name == "form") {  // elements inside stay open
    if (const std::size_t found = find(element.name, kMarker | kTable); found != kNotOpen) erase_at(found);
    return;
  }
  end_innermost(element.name, element.is(kEndsToScope) ? kMarker | kTable : kSpecial);
}

}  // namespace teratron

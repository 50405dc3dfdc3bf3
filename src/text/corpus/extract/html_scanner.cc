#include "corpus/extract/html_scanner.h"

#include <algorithm>
#include <cstdint>

#include "base/ascii.h"

namespace teratron {
namespace {

struct KeptAttribute {
  std::string_view name, element;  // the elements that have it; empty: all
};
constexpr auto kKeptAttributes = std::to_array<KeptAttribute>({{"id", ""},
                                                               {"class", ""},
                                                               {"style", ""},
                                                               {"hidden", ""},
                                                               {"aria-hidden", ""},
                                                               {"role", ""},
                                                               {"itemprop", ""},
                                                               {"property", "meta"},
                                                               {"content", "meta"},
                                                               {"rel", "link"},
                                                               {"href", "link"},
                                                               {"type", "input"}});
static_assert(kKeptAttributes.size() <= std::tuple_size_v<decltype(HtmlTag::attributes)>);

bool ends_name(char c) { return is_ascii_space(c) || c == '/' || c == '>'; }

class TagScanner {
 public:
  TagScanner(std::string_view html, std::size_t at, HtmlTag& tag) : html_(html), at_(at + 1), tag_(tag) {}

  void scan() {
    tag_.is_end = at_ < html_.size() && html_[at_] == '/';
    tag_.closes_itself = false;
    tag_.attribute_count = tag_.end = 0;
    at_ += tag_.is_end ? 1 : 0;
    tag_.name.clear();
    for (; !is_over() && !ends_name(html_[at_]); ++at_) tag_.name.push_back(ascii_lower(html_[at_]));
    while (skip_to_attribute()) scan_attribute();
  }

 private:
  bool is_over() const { return at_ >= html_.size(); }
  void skip_spaces() {
    while (!is_over() && is_ascii_space(html_[at_])) ++at_;
  }

  // Returns false when the tag ends.
  bool skip_to_attribute() {
    for (; !is_over(); ++at_) {
      if (html_[at_] == '>') {
        tag_.closes_itself = html_[at_ - 1] == '/' && at_ - 1 != value_end_;
        tag_.end = at_ + 1;
        return false;
      }
      if (!is_ascii_space(html_[at_]) && html_[at_] != '/') return true;
    }
    return false;
  }

  void scan_attribute() {
    const std::size_t begin = at_++;  // a leading "=" is part of the name
    while (!is_over() && !ends_name(html_[at_]) && html_[at_] != '=') ++at_;
    const std::string_view name = html_.substr(begin, at_ - begin);
    std::size_t end = at_;
    skip_spaces();
    if (!is_over() && html_[at_] == '=') {
      ++at_;
      skip_spaces();
      scan_value();
      end = at_;
    }
    keep(name, html_.substr(begin, end - begin));
  }

  void scan_value() {
    if (is_over() || html_[at_] == '>') return;
    if (html_[at_] == '"' || html_[at_] == '\'') {
      at_ = std::min(html_.find(html_[at_], at_ + 1), html_.size());
      if (!is_over()) ++at_;
      return;
    }
    while (!is_over() && !is_ascii_space(html_[at_]) && html_[at_] != '>') ++at_;
    value_end_ = at_ - 1;
  }

  void keep(std::string_view name, std::string_view attribute) {
    for (std::size_t i = 0; i < kKeptAttributes.size(); ++i) {
      const KeptAttribute& kept = kKeptAttributes[i];
      if (!equals_ignoring_case(name, kept.name) || (!kept.element.empty() && kept.element != tag_.name)) continue;
      if ((seen_ >> i & 1U) == 0) tag_.attributes[tag_.attribute_count++] = attribute;
      seen_ |= 1U << i;
    }
  }

  std::string_view html_;
  std::size_t at_;
  HtmlTag& tag_;
  std::size_t value_end_ = 0;  // end of the last value without quotes, which may end in "/"
  std::uint32_t seen_ = 0;     // bits of kKeptAttributes
};

// The end tag of a script, from `at` on. Inside "<!-- <script> ... -->" end tags do not count.
std::size_t end_of_script(std::string_view html, std::size_t at) {
  const auto is_tag = [&](std::size_t i, std::string_view name) {
    const std::string_view rest = html.substr(i);
    return rest.size() > name.size() && begins_ignoring_case(rest, name) && ends_name(rest[name.size()]);
  };
  bool is_escaped = false, is_nested = false;
  for (; at < html.size(); ++at) {
    at = html.find_first_of(is_escaped ? "<-" : "<", at);
    if (at >= html.size()) break;
    if (html.substr(at).starts_with("-->")) {
      is_escaped = is_nested = false;
    } else if (!is_escaped && html.substr(at).starts_with("<!--")) {
      is_escaped = true;
      at += 1;  // "<!-->" ends at once
    } else if (is_escaped && !is_nested && is_tag(at, "<script")) {
      is_nested = true;
    } else if (is_tag(at, "</script")) {
      if (!is_nested) return at;
      is_nested = false;
    }
  }
  return html.size();
}

}  // namespace

void scan_tag(std::string_view html, std::size_t at, HtmlTag& tag) { TagScanner(html, at, tag).scan(); }

std::size_t end_of_comment(std::string_view html, std::size_t at) {
  at += 4;
  if (html.substr(at).starts_with('>')) return at + 1;
  if (html.substr(at).starts_with("->")) return at + 2;
  for (; (at = html.find("--", at)) != html.npos; ++at) {
    if (html.substr(at + 2).starts_with('>')) return at + 3;
    if (html.substr(at + 2).starts_with("!>")) return at + 4;
  }
  return html.size();
}

std::size_t end_of_declaration(std::string_view html, std::size_t at) {
  const std::size_t end = html.find('>', at);
  return end == html.npos ? html.size() : end + 1;
}

std::size_t end_of_raw_text(std::string_view html, std::size_t at, std::string_view name) {
  if (name == "script") return end_of_script(html, at);
  for (; (at = html.find("</", at)) != html.npos; at += 2) {
    const std::string_view rest = html.substr(at + 2);
    if (rest.size() > name.size() && ends_name(rest[name.size()]) && begins_ignoring_case(rest, name)) {
      return at;
    }
  }
  return html.size();
}

}  // namespace teratron

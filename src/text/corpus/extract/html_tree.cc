#include "corpus/extract/html_tree.h"

#include <gumbo.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdlib>
#include <new>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"
#include "corpus/extract/page_blocks.h"

namespace teratron {
namespace {

// Memory of one parse, freed at once: gumbo frees a tree by recursion. A parse that needs more than `most` leaves the
// parser by a jump, since gumbo cannot be stopped otherwise.
class ParseMemory {
 public:
  explicit ParseMemory(std::size_t most) : left_(most) {}
  ParseMemory(const ParseMemory&) = delete;
  ParseMemory& operator=(const ParseMemory&) = delete;
  ~ParseMemory() {
    while (newest_ != nullptr) std::free(std::exchange(newest_, newest_->before));
  }

  std::jmp_buf& exhausted() { return exhausted_; }

  static void* allocate(void* memory, std::size_t bytes) { return static_cast<ParseMemory*>(memory)->take(bytes); }
  static void release(void*, void*) {}

 private:
  struct Block {
    Block* before;
  };
  static constexpr std::size_t kBlockBytes = std::size_t{256} << 10, kAlignment = alignof(std::max_align_t);

  // No object with a destructor may live here: a jump leaves this function.
  void* take(std::size_t bytes) {
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > room_) {
      const std::size_t wanted = std::max(bytes, kBlockBytes) + kAlignment;
      void* const fresh = wanted > left_ ? nullptr : std::malloc(wanted);
      if (fresh == nullptr) std::longjmp(exhausted_, 1);
      newest_ = new (fresh) Block{newest_};
      left_ -= wanted;
      next_ = static_cast<char*>(fresh) + kAlignment;
      room_ = wanted - kAlignment;
    }
    room_ -= bytes;
    return std::exchange(next_, next_ + bytes);
  }

  std::size_t left_, room_ = 0;
  char* next_ = nullptr;
  Block* newest_ = nullptr;
  std::jmp_buf exhausted_;
};

// Returns null if it took too much memory. Separate from its caller, so that no object lives across the jump.
GumboOutput* parse_within(ParseMemory& memory, std::string_view html) {
  if (setjmp(memory.exhausted()) != 0) return nullptr;
  GumboOptions options = kGumboDefaultOptions;
  options.allocator = ParseMemory::allocate;
  options.deallocator = ParseMemory::release;
  options.userdata = &memory;
  options.max_errors = 0;
  return ::gumbo_parse_with_options(&options, html.data(), html.size());
}

struct TagKind {
  ElementKind kind;
  std::vector<GumboTag> tags;
};

// Elements that are not listed are inline.
std::vector<TagKind> tag_kinds() {
  using enum ElementKind;
  return {
      {kLink, {GUMBO_TAG_A}},
      {kBreak, {GUMBO_TAG_BR}},
      {kRule, {GUMBO_TAG_HR}},
      {kParagraph, {GUMBO_TAG_P}},
      {kHeading, {GUMBO_TAG_H1, GUMBO_TAG_H2, GUMBO_TAG_H3, GUMBO_TAG_H4, GUMBO_TAG_H5, GUMBO_TAG_H6}},
      {kList, {GUMBO_TAG_UL, GUMBO_TAG_OL, GUMBO_TAG_DL}},
      {kListItem, {GUMBO_TAG_LI, GUMBO_TAG_DT, GUMBO_TAG_DD}},
      {kQuote, {GUMBO_TAG_BLOCKQUOTE}},
      {kPre, {GUMBO_TAG_PRE}},
      {kTable, {GUMBO_TAG_TABLE}},
      {kRow, {GUMBO_TAG_TR}},
      {kCell, {GUMBO_TAG_TD, GUMBO_TAG_TH}},
      {kCaption, {GUMBO_TAG_CAPTION}},
      {kFigure, {GUMBO_TAG_FIGURE}},
      {kHeader, {GUMBO_TAG_HEADER}},
      {kArticle, {GUMBO_TAG_ARTICLE, GUMBO_TAG_MAIN}},
      {kBeside, {GUMBO_TAG_NAV, GUMBO_TAG_FOOTER, GUMBO_TAG_ASIDE, GUMBO_TAG_FORM, GUMBO_TAG_FIELDSET, GUMBO_TAG_MENU}},
      {kBlock,
       {GUMBO_TAG_BODY, GUMBO_TAG_DIV, GUMBO_TAG_SECTION, GUMBO_TAG_CENTER, GUMBO_TAG_ADDRESS, GUMBO_TAG_DETAILS,
        GUMBO_TAG_SUMMARY, GUMBO_TAG_HGROUP, GUMBO_TAG_TBODY, GUMBO_TAG_THEAD, GUMBO_TAG_TFOOT}},
  };
}

// Elements whose content is never text of the page.
constexpr auto kTagsWithoutText = std::to_array<GumboTag>(
    {GUMBO_TAG_HEAD,       GUMBO_TAG_TITLE,    GUMBO_TAG_SCRIPT,   GUMBO_TAG_STYLE,  GUMBO_TAG_NOSCRIPT,
     GUMBO_TAG_TEMPLATE,   GUMBO_TAG_IFRAME,   GUMBO_TAG_OBJECT,   GUMBO_TAG_EMBED,  GUMBO_TAG_APPLET,
     GUMBO_TAG_AUDIO,      GUMBO_TAG_VIDEO,    GUMBO_TAG_CANVAS,   GUMBO_TAG_SVG,    GUMBO_TAG_MATH,
     GUMBO_TAG_MAP,        GUMBO_TAG_SELECT,   GUMBO_TAG_DATALIST, GUMBO_TAG_BUTTON, GUMBO_TAG_TEXTAREA,
     GUMBO_TAG_FIGCAPTION, GUMBO_TAG_NOFRAMES, GUMBO_TAG_NOEMBED});

using KindTable = std::array<std::optional<ElementKind>, GUMBO_TAG_LAST + 1>;

KindTable make_kind_table() {
  KindTable table;
  table.fill(ElementKind::kInline);
  for (const TagKind& one : tag_kinds()) {
    for (const GumboTag tag : one.tags) table[tag] = one.kind;
  }
  for (const GumboTag tag : kTagsWithoutText) table[tag] = std::nullopt;
  return table;
}

// Empty if the element's content is no text of the page.
std::optional<ElementKind> kind_of(GumboTag tag) {
  static const KindTable table = make_kind_table();
  return table[tag];
}

std::string_view attribute(const GumboElement& element, const char* name) {
  const GumboAttribute* const found = ::gumbo_get_attribute(&element.attributes, name);
  return found == nullptr ? std::string_view{} : std::string_view(found->value);
}

bool is_hidden_element(const GumboElement& element) {
  if (::gumbo_get_attribute(&element.attributes, "hidden") != nullptr) return true;
  if (attribute(element, "aria-hidden") == "true") return true;
  std::string style;
  for (const char c : attribute(element, "style")) {
    if (!is_ascii_space(c)) style.push_back(ascii_lower(c));
  }
  return style.find("display:none") != style.npos || style.find("visibility:hidden") != style.npos;
}

// The text of gumbo's node, if it has one.
std::string_view shown_text(const GumboNode& node) {
  const bool is_text =
      node.type == GUMBO_NODE_TEXT || node.type == GUMBO_NODE_WHITESPACE || node.type == GUMBO_NODE_CDATA;
  return is_text ? std::string_view(node.v.text.text) : std::string_view{};
}

void add_title(const GumboElement& element, HtmlTree& tree) {
  const bool has_better = !tree.title.empty();
  for (unsigned i = 0; i < element.children.length && !has_better; ++i) {
    tree.title += shown_text(*static_cast<const GumboNode*>(element.children.data[i]));
  }
}

// Reads <title>, <meta> and <link>.
void note_head(const GumboElement& element, HtmlTree& tree) {
  if (element.tag == GUMBO_TAG_META && attribute(element, "property") == "og:title" &&
      !attribute(element, "content").empty()) {
    tree.title = attribute(element, "content");
  } else if (element.tag == GUMBO_TAG_LINK && equals_ignoring_case(attribute(element, "rel"), "canonical")) {
    tree.canonical = attribute(element, "href");
  } else if (element.tag == GUMBO_TAG_TITLE) {
    add_title(element, tree);
  }
}

// Walks gumbo's tree without recursion and builds ours of the visible nodes below the body.
class TreeWalk {
 public:
  explicit TreeWalk(HtmlTree& tree) : tree_(tree) {}

  void walk(const GumboNode& document) {
    enter(document);
    while (!open_.empty()) {
      Open& top = open_.back();
      const GumboVector& children =
          top.node->type == GUMBO_NODE_DOCUMENT ? top.node->v.document.children : top.node->v.element.children;
      if (top.next_child < children.length) {
        enter(*static_cast<const GumboNode*>(children.data[top.next_child++]));
        continue;
      }
      if (top.ours >= 0) tree_.nodes[static_cast<std::size_t>(top.ours)].end = size();
      open_.pop_back();
    }
  }

 private:
  struct Open {
    const GumboNode* node;
    std::int32_t ours = -1;  // number of our node; -1: none so far
    unsigned next_child = 0;
  };
  std::int32_t size() const { return static_cast<std::int32_t>(tree_.nodes.size()); }
  std::int32_t parent() const { return open_.empty() ? -1 : open_.back().ours; }

  void enter(const GumboNode& node) {
    if (node.type == GUMBO_NODE_DOCUMENT) {
      open_.push_back({.node = &node});
    } else if (node.type == GUMBO_NODE_ELEMENT) {
      enter_element(node);
    } else if (const std::string_view text = shown_text(node); !text.empty() && parent() >= 0) {
      tree_.nodes.push_back({.parent = parent(), .end = size() + 1, .text = text});
    }
  }

  void enter_element(const GumboNode& node) {
    const GumboElement& element = node.v.element;
    note_head(element, tree_);
    if (element.tag == GUMBO_TAG_HTML || element.tag == GUMBO_TAG_HEAD) {
      open_.push_back({.node = &node});
      return;
    }
    const bool is_body = element.tag == GUMBO_TAG_BODY;  // scripts show hidden bodies
    const std::optional<ElementKind> kind = kind_of(element.tag);
    if (!kind || (parent() < 0 && !is_body) || (!is_body && is_hidden_element(element))) return;
    HtmlNode ours{.kind = *kind, .parent = parent(), .name = ::gumbo_normalized_tagname(element.tag)};
    ours.id = attribute(element, "id");
    ours.classes = attribute(element, "class");
    ours.role = attribute(element, "role");
    ours.prop = attribute(element, "itemprop");
    open_.push_back({.node = &node, .ours = size()});
    tree_.nodes.push_back(ours);
  }

  HtmlTree& tree_;
  std::vector<Open> open_;
};

}  // namespace

std::variant<HtmlTree, HtmlRefusal> parse_html(std::string_view html, std::size_t most_bytes) {
  std::variant<std::string, HtmlRefusal> simple = simplify_html(html);
  if (const auto* refused = std::get_if<HtmlRefusal>(&simple)) return *refused;
  auto memory = std::make_shared<ParseMemory>(most_bytes);
  const GumboOutput* const parsed = parse_within(*memory, std::get<std::string>(simple));
  if (parsed == nullptr) {
    return HtmlRefusal{"too large", fmt::format("its tree takes more than {} bytes of memory", most_bytes)};
  }
  HtmlTree tree{.memory = memory};
  TreeWalk(tree).walk(*parsed->document);
  tree.title = collapse_spaces(tree.title);
  tree.canonical = without_ascii_spaces(tree.canonical);
  return tree;
}

}  // namespace teratron

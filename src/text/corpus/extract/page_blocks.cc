#include "corpus/extract/page_blocks.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "base/utf8.h"

namespace teratron {
namespace {

// Spaces for layout: replaced by a space, or removed.
bool is_layout_space(char32_t code) {
  return code == 0xA0 || (code >= 0x2000 && code <= 0x200A) || code == 0x202F || code == 0x205F || code == 0x3000;
}
bool is_invisible(char32_t code) { return code == 0xAD || code == 0x200B || code == 0x2060 || code == 0xFEFF; }

bool ends_sentence(char32_t code) {
  constexpr auto kMarks = std::to_array<char32_t>({'.', '!', '?', 0x2026, 0x3002, 0xFF01, 0xFF1F, 0x964, 0x61F});
  return std::ranges::find(kMarks, code) != kMarks.end();
}

// Collects text piece by piece and collapses white space across pieces.
class BlockText {
 public:
  void add(std::string_view text, bool is_preformatted, bool is_link) {
    while (!text.empty()) {
      const Utf8Step step = decode_utf8(text);
      const std::string_view bytes = text.substr(0, step.length);
      text.remove_prefix(step.length);
      if (step.status != Utf8Status::kValid || step.code == 0 || is_invisible(step.code)) continue;
      const bool is_space = (step.code < 0x80 && is_ascii_space(bytes[0])) || is_layout_space(step.code);
      if (!is_space) {
        add_character(step.code, bytes, is_link);
      } else if (!is_preformatted || is_layout_space(step.code)) {
        has_space_ = true;
      } else if (step.code == '\n') {
        ++line_ends_;
        has_space_ = false;
        preformatted_.clear();
      } else if (step.code != '\r') {
        preformatted_ += bytes;
      }
    }
  }
  void end_line() { line_ends_ = std::max<std::int64_t>(line_ends_, 1); }

  bool is_empty() const { return block_.text.empty(); }
  PageBlock take() {
    line_ends_ = 0;
    has_space_ = false;
    preformatted_.clear();
    return std::exchange(block_, {});
  }

 private:
  void add_character(char32_t code, std::string_view bytes, bool is_link) {
    if (line_ends_ > 0) {
      if (!is_empty()) block_.text.append(static_cast<std::size_t>(line_ends_), '\n');
      block_.text += preformatted_;
    } else if (!preformatted_.empty()) {
      block_.text += preformatted_;
    } else if (has_space_ && !is_empty()) {
      block_.text += ' ';
    }
    line_ends_ = 0;
    has_space_ = false;
    preformatted_.clear();
    block_.text += bytes;
    ++block_.characters;
    block_.link_characters += is_link ? 1 : 0;
    block_.sentence_marks += ends_sentence(code) ? 1 : 0;
  }

  PageBlock block_;
  std::int64_t line_ends_ = 0;  // not yet written, as the two below
  bool has_space_ = false;
  std::string preformatted_;  // spaces in <pre>
};

class BlockFinder {
 public:
  explicit BlockFinder(const HtmlTree& tree) : tree_(tree) {}

  std::vector<PageBlock> find() {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(tree_.nodes.size()); ++i) {
      while (!open_.empty() && node(open_.back()).end <= i) leave();
      enter(i);
    }
    while (!open_.empty()) leave();
    return std::move(blocks_);
  }

 private:
  static bool is_inline(ElementKind kind) { return kind == ElementKind::kInline || kind == ElementKind::kLink; }
  const HtmlNode& node(std::int32_t i) const { return tree_.nodes[static_cast<std::size_t>(i)]; }

  void enter(std::int32_t i) {
    const HtmlNode& one = node(i);
    if (one.kind == ElementKind::kText) {
      text_.add(one.text, preformatted_ > 0, links_ > 0);
      if (one.text.find_first_not_of(" \t\r\n\f") != one.text.npos) breaks_ = 0;
      return;
    }
    if (one.kind == ElementKind::kBreak) {
      if (++breaks_ > 1) flush();
      text_.end_line();
      return;
    }
    if (!is_inline(one.kind)) flush();
    count(one.kind, 1);
    open_.push_back(i);
  }

  void leave() {
    const ElementKind kind = node(open_.back()).kind;
    if (!is_inline(kind)) flush();
    count(kind, -1);
    open_.pop_back();
  }

  void count(ElementKind kind, int by) {
    if (kind == ElementKind::kPre) preformatted_ += by;
    if (kind == ElementKind::kLink) links_ += by;
    if (kind == ElementKind::kParagraph) paragraphs_ += by;
  }

  void flush() {
    breaks_ = 0;
    const bool is_empty = text_.is_empty();
    PageBlock block = text_.take();
    if (is_empty) return;
    for (std::size_t i = open_.size(); i > 0; --i) {
      block.node = open_[i - 1];
      if (!is_inline(node(block.node).kind)) break;
    }
    block.is_paragraph = paragraphs_ > 0;
    blocks_.push_back(std::move(block));
  }

  const HtmlTree& tree_;
  std::vector<std::int32_t> open_;
  BlockText text_;
  int preformatted_ = 0, links_ = 0, paragraphs_ = 0;  // open elements
  int breaks_ = 0;                                     // in a row
  std::vector<PageBlock> blocks_;
};

}  // namespace

std::vector<PageBlock> find_page_blocks(const HtmlTree& tree) { return BlockFinder(tree).find(); }

std::string collapse_spaces(std::string_view text) {
  BlockText line;
  line.add(text, /*is_preformatted=*/false, /*is_link=*/false);
  return line.take().text;
}

}  // namespace teratron

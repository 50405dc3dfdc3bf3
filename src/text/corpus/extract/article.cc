#include "corpus/extract/article.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "corpus/extract/article_hints.h"
#include "corpus/extract/page_blocks.h"

namespace teratron {
namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kLongBlock = 80;      // characters; labels, names and buttons are shorter
constexpr std::size_t kLongestTitle = 1000;  // bytes; headings are compared with the title
constexpr std::int64_t kShortHeadline = 20, kLongTeaser = 400;

// Characters and values of blocks, summed over all elements.
class ArticleRule {
 public:
  explicit ArticleRule(const HtmlTree& page)
      : page_(page),
        blocks_(find_page_blocks(page)),
        size_(page.nodes.size()),
        value_(size_),
        good_(size_),
        all_(size_),
        links_(size_),
        is_out_(size_) {}

  Article find(std::int64_t least) {
    Article article;
    if (size_ == 0) return article;
    sum();
    mark_beside();
    sum();
    mark_teasers();
    sum();
    const std::size_t main = choose();
    article.characters = good_[0];
    mark_within(main);
    std::int64_t characters = 0;
    article.text = text_within(main, characters);
    if (characters < least) article.text.clear();
    return article;
  }

 private:
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  const HtmlNode& node(std::size_t i) const { return page_.nodes[i]; }
  const HtmlNode& node_of(const PageBlock& block) const { return node(index(block.node)); }
  static bool is_prose(const PageBlock& block) {
    return block.link_characters * 2 <= block.characters &&
           (block.characters >= kLongBlock || (block.sentence_marks > 0 && block.characters >= 25));
  }

  std::int64_t value_of(const PageBlock& block) const {
    const ElementKind kind = node_of(block).kind;
    const std::int64_t plain = block.characters - block.link_characters;
    if (is_prose(block)) return plain;
    if (kind == ElementKind::kHeading || kind == ElementKind::kPre || kind == ElementKind::kCaption) return 0;
    return -std::min<std::int64_t>(block.characters, kLongBlock) / 2 - 5;
  }

  // Sums over blocks that are not excluded.
  void sum() {
    for (Numbers* one : {&value_, &good_, &all_, &links_}) std::ranges::fill(*one, 0);
    for (const PageBlock& block : blocks_) {
      const std::size_t i = index(block.node);
      if (is_out(i)) continue;
      const std::int64_t value = value_of(block);
      value_[i] += value;
      good_[i] += std::max<std::int64_t>(0, value);
      all_[i] += block.characters;
      links_[i] += block.link_characters;
    }
    for (std::size_t i = size_ - 1; i > 0; --i) {
      const std::size_t parent = index(node(i).parent);
      for (Numbers* one : {&value_, &good_, &all_, &links_}) (*one)[parent] += (*one)[i];
    }
  }

  bool is_out(std::size_t i) const { return is_out_[i] != 0; }
  void take_out(std::size_t i) {
    for (std::size_t below = i; below < index(node(i).end); ++below) is_out_[below] = 1;
  }

  // Excludes elements that are beside the article by their kind or names, unless they hold most of the page's prose.
  // Comments may hold more than the article.
  void mark_beside() {
    for (std::size_t i = 1; i < size_; ++i) {
      if (is_out(i) || node(i).kind == ElementKind::kText) continue;
      if (is_discussion(node(i)) ? good_[i] * 10 > good_[0] * 9 : good_[i] * 2 > good_[0]) continue;
      if (is_beside(node(i))) take_out(i);
    }
  }

  // A teaser: a headline that links elsewhere, with a few words about it.
  void mark_teasers() {
    for (const PageBlock& block : blocks_) {
      const std::size_t at = index(block.node);
      if (is_out(at) || block.link_characters * 2 <= block.characters || block.characters < kShortHeadline) continue;
      std::size_t item = 0;
      for (std::size_t up = at; up != 0; up = index(node(up).parent)) {
        if (good_[up] > kLongTeaser || good_[up] * 2 > good_[0]) break;
        if (is_item(node(up).kind)) item = up;
      }
      if (item != 0) take_out(item);
    }
  }
  static bool is_item(ElementKind kind) {
    return kind == ElementKind::kListItem || kind == ElementKind::kArticle || kind == ElementKind::kBlock;
  }

  std::size_t choose() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < size_; ++i) {
      if (node(i).kind == ElementKind::kText || is_out(i)) continue;
      if (value_[i] >= value_[best]) best = i;  // of equals the innermost
    }
    std::size_t chosen = best;
    for (std::size_t i = best; i < index(node(best).end); ++i) {
      if (!is_out(i) && is_body_of_article(node(i)) && good_[i] * 5 >= good_[best] * 3) chosen = i;
    }
    while (chosen != 0 && (node(chosen).kind == ElementKind::kParagraph || node(chosen).kind == ElementKind::kInline ||
                           node(chosen).kind == ElementKind::kLink)) {
      chosen = index(node(chosen).parent);
    }
    return chosen;
  }

  // Excludes parts of the article that are mostly links.
  void mark_within(std::size_t main) {
    for (std::size_t i = main + 1; i < index(node(main).end); ++i) {
      const ElementKind kind = node(i).kind;
      if (is_out(i) || kind == ElementKind::kText || kind == ElementKind::kInline || kind == ElementKind::kLink)
        continue;
      if (kind == ElementKind::kParagraph || kind == ElementKind::kHeading || kind == ElementKind::kListItem) continue;
      if (links_[i] * 2 > all_[i]) take_out(i);
    }
  }

  // Judges the article's first part, not the article.
  bool is_section_heading(const PageBlock& block) const {
    const HtmlNode& heading = node_of(block);
    return heading.kind == ElementKind::kHeading && heading.name != "h1" &&
           std::string_view(page_.title).substr(0, kLongestTitle).find(block.text) == std::string_view::npos;
  }

  bool is_escaped_markup(const PageBlock& block) const {
    return block.text.starts_with('<') && block.text.ends_with('>') && node_of(block).kind != ElementKind::kPre;
  }

  // Headline, date, author, labels: blocks before the first and after the last words of an article.
  bool is_fringe(const PageBlock& block) const {
    if (is_prose(block)) return false;
    const ElementKind kind = node_of(block).kind;
    return kind == ElementKind::kHeading ||
           (!block.is_paragraph && (kind == ElementKind::kBlock || kind == ElementKind::kArticle ||
                                    kind == ElementKind::kHeader || kind == ElementKind::kFigure));
  }

  std::string text_within(std::size_t main, std::int64_t& characters) const {
    std::string text;
    std::vector<const PageBlock*> kept;
    for (const PageBlock& block : blocks_) {
      const std::size_t i = index(block.node);
      if (i < main || i >= index(node(main).end) || is_out(i)) continue;
      if (block.link_characters * 5 > block.characters * 4 && node(i).kind != ElementKind::kHeading) continue;
      if (is_escaped_markup(block)) continue;
      kept.push_back(&block);
    }
    while (!kept.empty() && is_fringe(*kept.back())) kept.pop_back();
    const auto first = std::ranges::find_if_not(
        kept, [&](const PageBlock* one) { return is_fringe(*one) && !is_section_heading(*one); });
    kept.erase(kept.begin(), first);
    for (const PageBlock* block : kept) {
      if (!text.empty()) text += '\n';
      text += block->text;
      characters += block->characters;
    }
    return text;
  }

  const HtmlTree& page_;
  std::vector<PageBlock> blocks_;
  std::size_t size_;
  Numbers value_, good_, all_, links_;
  std::vector<char> is_out_;
};

}  // namespace

Article find_article(const HtmlTree& page, std::int64_t least_characters) {
  return ArticleRule(page).find(least_characters);
}

}  // namespace teratron

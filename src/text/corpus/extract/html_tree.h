// A page of HTML as a flat tree of its visible text, for finding the article.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "corpus/extract/html_simplifier.h"

namespace teratron {

// How an element affects its text.
enum class ElementKind : std::uint8_t {
  kText,       // a piece of text, no element
  kInline,     // span, b, i, unknown elements
  kLink,       // a
  kBreak,      // br
  kRule,       // hr
  kBlock,      // div, section, center ...
  kArticle,    // article, main
  kParagraph,  // p
  kHeading,    // h1 to h6
  kList,       // ul, ol, dl
  kListItem,   // li, dt, dd
  kQuote,      // blockquote
  kPre,        // pre
  kTable,      // table
  kRow,        // tr
  kCell,       // td, th
  kCaption,    // figcaption, caption
  kFigure,     // figure
  kHeader,     // header
  kBeside,     // nav, footer, aside, form ...
};

// Nodes are in page order: the descendants of node i are i + 1 to end - 1.
struct HtmlNode {
  ElementKind kind = ElementKind::kText;
  std::int32_t parent = -1, end = 0;
  std::string_view text;                           // of a text node
  std::string_view name, id, classes, role, prop;  // of an element; the last four as written
};

struct HtmlTree {
  std::vector<HtmlNode> nodes;   // the first is the body
  std::string title;             // "og:title", else <title>; one line; empty: none
  std::string canonical;         // the page's declared address
  std::shared_ptr<void> memory;  // owns what the nodes' views point to
};

// `html` is UTF-8; invalid bytes become U+FFFD. Any text gives a tree, as in a browser. Refuses pages nested deeper
// than kDeepestHtml (html_simplifier.h) and those that take more than most_bytes to parse. Uses constant stack space.
std::variant<HtmlTree, HtmlRefusal> parse_html(std::string_view html, std::size_t most_bytes);

}  // namespace teratron

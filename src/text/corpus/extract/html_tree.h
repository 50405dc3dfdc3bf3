// A page of HTML as a flat tree: what it takes to find the article in it, and nothing of what is never shown.
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

// What an element does to the text in it.
enum class ElementKind : std::uint8_t {
  kText,       // no element: a piece of text
  kInline,     // span, b, i, what is unknown
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

// Nodes lie in the order of the page: those below node i are i + 1 to end - 1.
struct HtmlNode {
  ElementKind kind = ElementKind::kText;
  std::int32_t parent = -1, end = 0;
  std::string_view text;                           // of a text
  std::string_view name, id, classes, role, prop;  // of an element; the last four as the page has them
};

struct HtmlTree {
  std::vector<HtmlNode> nodes;   // the first is the body
  std::string title;             // "og:title", else <title>; one line; empty: none
  std::string canonical;         // the page's own address, if it says so
  std::shared_ptr<void> memory;  // what the nodes' views point into
};

// `html` is UTF-8; bytes that are not become U+FFFD. Any text gives a tree, as in a browser. Refused is what nests
// deeper than kDeepestHtml (html_simplifier.h) and what takes more than most_bytes to parse. Takes no stack that grows
// with the page.
std::variant<HtmlTree, HtmlRefusal> parse_html(std::string_view html, std::size_t most_bytes);

}  // namespace teratron

// Finds the blocks (page_blocks.h) of a page that are its article. bench/extract compares the rule with trafilatura on
// pages whose articles people marked (bench/results/extract.md).
//
// A block is prose if at most half of it is links, and it has 80 characters, or 25 and the end of a sentence. Its value
// is its characters outside of links. Headings, captions and <pre> have value 0; any other block costs half its
// characters, at most 40, and 5.
//  1. Elements beside an article are removed: nav, footer, aside, form, and those that a word of their role, class or
//     id names so, such as "sidebar" or "share" (article_hints.h); but not one with more than half of the page's prose
//     (comments: nine tenths).
//  2. Teasers are removed: around a block of at least 20 characters that is mostly links, the largest list item,
//     article or plain block with at most 400 characters of prose, and at most half of the page's.
//  3. The article is the element with the highest sum of values, the innermost of equals. An <article>, <main>,
//     articleBody or the like inside it replaces it if it has three fifths of the prose.
//  4. In it, elements that are mostly links are removed, except paragraphs, headings and list items; blocks that are
//     four fifths links, except headings; and at both ends headings and blocks without prose, except paragraphs, list
//     items, cells and <pre>. A section's heading may come first.
#pragma once

#include <cstdint>
#include <string>

#include "corpus/extract/html_tree.h"

namespace teratron {

struct Article {
  std::string text;             // blocks with a line end between them; empty: the page has no article
  std::int64_t characters = 0;  // of the page's sentences, with or without an article
};

// An article has at least `least_characters` characters other than spaces.
Article find_article(const HtmlTree& page, std::int64_t least_characters);

}  // namespace teratron

// The text of a page as blocks: paragraphs, headings, list items, cells, in the page's order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "corpus/extract/html_tree.h"

namespace teratron {

struct PageBlock {
  std::int32_t node = 0;  // the innermost element around it that is not inline
  std::string text;       // white space collapsed, no space at either end; line ends only in <pre> and at <br>
  std::int64_t characters = 0, link_characters = 0;  // all, and those in links
  std::int64_t sentence_marks = 0;                   // full stops, question marks and the like
  bool is_paragraph = false;                         // inside a <p>
};

// Splits text at the edges of elements that are not inline, and at two line breaks in a row. No block is empty.
std::vector<PageBlock> find_page_blocks(const HtmlTree& tree);

// Collapses white space to one line.
std::string collapse_spaces(std::string_view text);

}  // namespace teratron

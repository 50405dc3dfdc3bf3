// Which of a page's blocks are its article: a rule of ours, which src/text/corpus/README.md states.
#pragma once

#include <cstdint>
#include <string>

#include "corpus/extract/html_tree.h"

namespace teratron {

struct Article {
  std::string text;             // blocks with a line end between them; empty: the page has no article
  std::int64_t characters = 0;  // of sentences on the page, whether there is an article or not
};

// An article has at least `least_characters` that are no spaces.
Article find_article(const HtmlTree& page, std::int64_t least_characters);

}  // namespace teratron

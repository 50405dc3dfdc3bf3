// Finds the blocks of a page that are its article, by the rule in src/text/corpus/README.md.
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

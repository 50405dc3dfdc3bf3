// Hints in the kinds of elements and in the names that authors give to them: what is an article, and what is beside
// one.
#pragma once

#include "corpus/extract/html_tree.h"

namespace teratron {

// Whether an element, its class, its id or its role marks it as no part of an article: navigation, comments, related
// articles, sharing, advertisements.
bool is_beside(const HtmlNode& element);

// Whether it is beside an article because it holds comments.
bool is_discussion(const HtmlNode& element);

// Whether its names mark it as the article's body.
bool is_body_of_article(const HtmlNode& element);

}  // namespace teratron

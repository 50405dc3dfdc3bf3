// Removes from a page what its text does not need: comments, scripts, SVG, options of forms, most attributes. gumbo,
// the parser, compares a tag's attributes pairwise and searches all open elements at a tag; of a simplified page 8 MiB
// of any tags take it about 2 seconds or less.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace teratron {

// The reason why a page cannot be parsed within bounds.
struct HtmlRefusal {
  std::string reason, detail;  // "too deep", "tags nested 600 deep, 512 are allowed"
};

constexpr std::int64_t kDeepestHtml = 512;

// Markup with the same text as `html`, made in time proportional to its length. A parser needs bounded time for each
// tag of the result: tags have few attributes, at most a few times kDeepestHtml elements are open at once, and hundreds
// are open at few tags only. Pages whose tags nest deeper are refused.
std::variant<std::string, HtmlRefusal> simplify_html(std::string_view html);

}  // namespace teratron

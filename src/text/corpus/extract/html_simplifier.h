// A page without what its text does not need: comments, scripts, SVG, forms' choices, most attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace teratron {

// What cannot be parsed within bounds.
struct HtmlRefusal {
  std::string reason, detail;  // "too deep", "tags nested 600 deep, 512 are allowed"
};

constexpr std::int64_t kDeepestHtml = 512;

// `html` as markup that gives the same text, in time that grows with its length alone. A parser takes bounded time for
// each tag of what comes back: no tag has more than a few attributes, and no more than some times kDeepestHtml elements
// are open at once, and hundreds of them at few of its tags alone. Refused is what nests deeper, as its tags tell.
std::variant<std::string, HtmlRefusal> simplify_html(std::string_view html);

}  // namespace teratron

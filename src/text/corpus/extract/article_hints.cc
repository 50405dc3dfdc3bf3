#include "corpus/extract/article_hints.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/ascii.h"

namespace teratron {
namespace {

// Whole words of a name: "share" matches "post-share" and "postShare", not "shareholder".
constexpr auto kWordsBeside = std::to_array<std::string_view>(
    {"ad",        "ads",        "advert",  "author",   "banner",     "bio",      "breadcrumb",  "breadcrumbs",
     "byline",    "caption",    "comment", "comments", "cookie",     "cookies",  "copyright",   "credit",
     "credits",   "disclaimer", "footer",  "follow",   "hidden",     "login",    "menu",        "meta",
     "modal",     "more",       "nav",     "navbar",   "newsletter", "outbrain", "pager",       "pagination",
     "popular",   "popup",      "print",   "promo",    "rail",       "rating",   "recommended", "related",
     "respond",   "share",      "sharing", "sidebar",  "signup",     "skip",     "social",      "sponsor",
     "sponsored", "subscribe",  "taboola", "tag",      "tags",       "teaser",   "toolbar",     "tooltip",
     "trending",  "widget"});
// Parts of words: "relatedposts", "commentlist".
constexpr auto kPartsBeside = std::to_array<std::string_view>(
    {"advert", "breadcrumb", "comment", "cookie", "disqus", "newsletter", "outbrain", "paywall", "recommend", "related",
     "sidebar", "signup", "sponsor", "subscri", "taboola", "timestamp"});
constexpr auto kRolesBeside =
    std::to_array<std::string_view>({"alert", "alertdialog", "banner", "complementary", "contentinfo", "dialog", "form",
                                     "menu", "menubar", "navigation", "search", "toolbar", "tooltip"});
constexpr auto kPartsOfBody =
    std::to_array<std::string_view>({"articlebody", "articlecontent", "articletext", "entrycontent", "postbody",
                                     "postcontent", "storybody", "storycontent", "storytext"});

template <class Names>
bool has(const Names& names, std::string_view one) {
  return std::ranges::find(names, one) != names.end();
}

// Calls `visit` with each word of a name, in lower case: "mainMenu2" has "main" and "menu".
template <class Visit>
bool any_word(std::string_view name, const Visit& visit) {
  std::string word;
  bool before_is_small = false;
  for (const char c : name) {
    const bool is_capital = c >= 'A' && c <= 'Z';
    if (!word.empty() && (!is_ascii_letter(c) || (is_capital && before_is_small))) {
      if (visit(word)) return true;
      word.clear();
    }
    if (is_ascii_letter(c)) word.push_back(ascii_lower(c));
    before_is_small = is_ascii_letter(c) && !is_capital;
  }
  return !word.empty() && visit(word);
}

bool has_part(std::string_view word, std::string_view part) { return word.find(part) != word.npos; }

bool names_beside(std::string_view name) {
  return any_word(name, [](const std::string& word) {
    return has(kWordsBeside, word) ||
           std::ranges::any_of(kPartsBeside, [&](std::string_view part) { return has_part(word, part); });
  });
}

bool names_discussion(std::string_view name) {
  return any_word(name, [](const std::string& word) { return has_part(word, "comment") || has_part(word, "disqus"); });
}

}  // namespace

bool is_beside(const HtmlNode& element) {
  if (element.kind == ElementKind::kBeside) return true;
  if (has(kRolesBeside, element.role)) return true;
  if (element.kind == ElementKind::kArticle) return false;  // blogs name topics in its classes: "tag-music"
  return names_beside(element.classes) || names_beside(element.id);
}

bool is_discussion(const HtmlNode& element) {
  return element.kind != ElementKind::kArticle && (names_discussion(element.classes) || names_discussion(element.id));
}

bool is_body_of_article(const HtmlNode& element) {
  if (element.prop == "articleBody" || element.kind == ElementKind::kArticle) return true;
  for (const std::string_view names : {element.classes, element.id}) {
    std::string letters;
    for (const char c : names) {
      if (is_ascii_letter(c)) letters.push_back(ascii_lower(c));
    }
    if (std::ranges::any_of(kPartsOfBody, [&](std::string_view part) { return letters.find(part) != letters.npos; })) {
      return true;
    }
  }
  return false;
}

}  // namespace teratron

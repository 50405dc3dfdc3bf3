// Names of HTML elements, grouped as in the standard's parsing algorithm (html.spec.whatwg.org, section 13.2).
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace teratron::html {

using Name = std::string_view;

template <std::size_t n>
constexpr bool is_one_of(const std::array<Name, n>& names, Name name) {  // `names` are sorted
  return std::ranges::binary_search(names, name);
}

constexpr bool is_heading(Name name) { return name.size() == 2 && name[0] == 'h' && name[1] >= '1' && name[1] <= '6'; }

// Elements that are never counted as open: void ones, single ones, and rows of a table, which end each other.
constexpr bool is_never_open(Name name) {
  constexpr auto kNames =
      std::to_array<Name>({"area",  "base",  "basefont", "bgsound", "body",  "br",    "col",   "colgroup", "embed",
                           "frame", "head",  "hr",       "html",    "image", "img",   "input", "keygen",   "link",
                           "meta",  "param", "source",   "tbody",   "tfoot", "thead", "tr",    "track",    "wbr"});
  return is_one_of(kNames, name);
}

// Elements without text that change how the parser reads on.
constexpr bool is_without_text(Name name) { return name == "frameset" || name == "frame" || name == "isindex"; }

// Elements that end an open paragraph.
constexpr bool ends_paragraph(Name name) {
  constexpr auto kNames =
      std::to_array<Name>({"address", "article", "aside", "blockquote", "center",     "dd",     "details", "dir",
                           "div",     "dl",      "dt",    "fieldset",   "figcaption", "figure", "footer",  "form",
                           "header",  "hgroup",  "hr",    "li",         "listing",    "main",   "menu",    "nav",
                           "ol",      "p",       "pre",   "section",    "summary",    "table",  "ul"});
  return is_heading(name) || is_one_of(kNames, name);
}

constexpr bool is_ruby_text(Name name) { return name == "rb" || name == "rp" || name == "rt" || name == "rtc"; }

// Elements whose content is no markup.
constexpr bool holds_raw_text(Name name) {
  constexpr auto kNames =
      std::to_array<Name>({"iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"});
  return is_one_of(kNames, name);
}

// Elements that are opened again if text follows an end tag that closed them too early.
constexpr bool is_formatting(Name name) {
  constexpr auto kNames = std::to_array<Name>(
      {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"});
  return is_one_of(kNames, name);
}

constexpr bool is_cell(Name name) { return name == "td" || name == "th" || name == "caption"; }

// Elements that end tags inside them cannot close, and in which formatting starts fresh.
constexpr bool is_marker(Name name) {
  return is_cell(name) || name == "applet" || name == "marquee" || name == "object" || name == "template";
}

// "Special" elements: an end tag without a rule of its own does not reach beyond them.
constexpr bool is_special(Name name) {
  constexpr auto kNames =
      std::to_array<Name>({"applet", "button", "caption", "marquee", "noscript", "object", "td", "template", "th"});
  return ends_paragraph(name) || is_one_of(kNames, name);
}

constexpr bool is_of_table(Name name) {
  constexpr auto kNames = std::to_array<Name>({"caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"});
  return is_one_of(kNames, name);
}

// HTML elements that end open SVG and MathML.
constexpr bool ends_foreign_content(Name name) {
  constexpr auto kNames = std::to_array<Name>(
      {"b",     "big",   "blockquote", "body",   "br",   "center", "code",  "dd", "div",  "dl",   "dt",
       "em",    "embed", "h1",         "h2",     "h3",   "h4",     "h5",    "h6", "head", "hr",   "i",
       "img",   "li",    "listing",    "menu",   "meta", "nobr",   "ol",    "p",  "pre",  "ruby", "s",
       "small", "span",  "strike",     "strong", "sub",  "sup",    "table", "tt", "u",    "ul",   "var"});
  return is_one_of(kNames, name);
}

// SVG and MathML elements that contain HTML.
constexpr bool holds_html_in_foreign(Name name) {
  constexpr auto kNames =
      std::to_array<Name>({"annotation-xml", "desc", "foreignobject", "mi", "mn", "mo", "ms", "mtext", "title"});
  return is_one_of(kNames, name);
}

}  // namespace teratron::html

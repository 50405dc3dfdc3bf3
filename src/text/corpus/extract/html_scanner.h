// Where tags, comments and raw text of a page begin and end, as the tokenizer of HTML's standard has it.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace teratron {

struct HtmlTag {
  std::string name;  // in small letters
  bool is_end = false;
  bool closes_itself = false;  // "/>"
  // The attributes that are kept, each as the page has it, of those of one name the first. No tag has more.
  std::array<std::string_view, 12> attributes;
  std::size_t attribute_count = 0;
  std::size_t end = 0;  // behind its ">"; 0: the page ends before it
};

// The tag whose "<" stands at `at` and is followed by a letter, or by "/" and a letter. Kept are the attributes that
// find_article() and HtmlTree look at. Takes time in proportion to the tag's length, however many attributes it has.
void scan_tag(std::string_view html, std::size_t at, HtmlTag& tag);

// The end of a comment, a declaration or a processing instruction whose "<" stands at `at`.
std::size_t end_of_comment(std::string_view html, std::size_t at);      // "<!-- ... -->"
std::size_t end_of_declaration(std::string_view html, std::size_t at);  // "<! ... >", "<? ... >", "</ ... >"

// Where the end tag of an element of raw text begins, whose start tag ends at `at`; the page's end: nowhere.
std::size_t end_of_raw_text(std::string_view html, std::size_t at, std::string_view name);

}  // namespace teratron

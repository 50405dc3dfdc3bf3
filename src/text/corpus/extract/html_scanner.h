// Finds the ends of tags, comments and raw text, as the tokenizer of HTML's standard does.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace teratron {

struct HtmlTag {
  std::string name;  // in lower case
  bool is_end = false;
  bool closes_itself = false;  // "/>"
  // The attributes that are kept, as written; the first of each name. No tag has more.
  std::array<std::string_view, 12> attributes;
  std::size_t attribute_count = 0;
  std::size_t end = 0;  // offset after its ">"; 0 if the page ends before
};

// Reads the tag whose "<" is at `at`, followed by a letter, or by "/" and a letter. Keeps the attributes that
// find_article() and HtmlTree use. Takes time proportional to the tag's length, whatever its number of attributes.
void scan_tag(std::string_view html, std::size_t at, HtmlTag& tag);

// The end of a comment, a declaration or a processing instruction whose "<" is at `at`.
std::size_t end_of_comment(std::string_view html, std::size_t at);      // "<!-- ... -->"
std::size_t end_of_declaration(std::string_view html, std::size_t at);  // "<! ... >", "<? ... >", "</ ... >"

// The offset of the end tag of a raw text element whose start tag ends at `at`; the page's end if there is none.
std::size_t end_of_raw_text(std::string_view html, std::size_t at, std::string_view name);

}  // namespace teratron

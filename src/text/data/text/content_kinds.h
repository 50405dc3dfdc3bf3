// How recognise_content() tells kinds apart: a function for each family, which knows nothing of the others.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/text/content.h"

namespace teratron::content {

// What a file seems to be, and what to do with it.
struct Finding {
  std::string what;    // "a PDF document"
  std::string advice;  // "convert it to text, for example with pdftotext"
  bool may_be_page = false;
  bool may_be_list = false;  // a text on each line could look so, too
};

// Formats that begin with bytes of their own: archives, compression, tables of columns, documents, pictures, programs;
// text in UTF-16 and UTF-32.
std::optional<Finding> find_signature(std::string_view head);

// Pages of HTML and XML. `text` begins behind white space. `is_all`: the file has no more.
std::optional<Finding> find_markup(std::string_view text, bool is_all);

// Comma-, semicolon- and tab-separated values, and settings (TOML, INI): by the shape of all lines. `is_all`: the file
// has no more.
std::optional<Finding> find_table(std::string_view text, bool is_all);

// By the name's ending alone, where the bytes did not tell.
std::optional<Finding> find_ending(std::string_view ending);

// What `text`, which begins with "{" or "[", is of JSON; nothing where it is other text. `is_named`: its name says
// JSON.
std::optional<Content> find_json(std::string_view text, bool is_all, bool is_named);

// kOther, with a refusal that reads on behind the file's name.
Content refused(const Finding& finding);

}  // namespace teratron::content

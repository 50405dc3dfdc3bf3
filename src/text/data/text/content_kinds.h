// The parts of recognise_content(): an independent function for each family of kinds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "data/text/content.h"

namespace teratron::content {

// The kind that a file seems to be, and what to do with it.
struct Finding {
  std::string what;    // "a PDF document"
  std::string advice;  // "convert it to text, for example with pdftotext"
  bool may_be_page = false;
  bool may_be_list = false;  // a list of short texts could look so, too
};

// Formats with a signature: archives, compression, column stores, documents, pictures, programs; text in UTF-16 and
// UTF-32.
std::optional<Finding> find_signature(std::string_view head);

// Pages of HTML and XML. `text` begins after white space. `is_all`: the file has no more.
std::optional<Finding> find_markup(std::string_view text, bool is_all);

// Comma-, semicolon- and tab-separated values, and settings (TOML, INI), by the shape of all lines. `is_all`: the file
// has no more.
std::optional<Finding> find_table(std::string_view text, bool is_all);

// The kind by the name's ending, if the bytes did not decide.
std::optional<Finding> find_ending(std::string_view ending);

// The JSON kind of `text`, which begins with "{" or "["; empty if it is other text. `is_named`: the file's name says
// JSON.
std::optional<Content> find_json(std::string_view text, bool is_all, bool is_named);

// kOther, with a refusal that follows the file's name in a message.
Content refused(const Finding& finding);

}  // namespace teratron::content

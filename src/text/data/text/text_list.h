// A file of short texts, such as prompts or passages: one a line, or in the objects of JSON lines or a JSON array.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/text/content.h"
#include "data/text/document_text.h"

namespace teratron {

// The lines of a text, without their ends (\n or \r\n). Empty ones are lines too.
std::vector<std::string_view> lines_of(std::string_view text);

enum class BlankLines {
  kKeep,  // a text each
  kSkip,  // lines of spaces and tabs only are no texts; an empty text in JSON is one
};

// The texts of a file, compressed or not, in order; "-" is standard input. `format_flag`: the flag of `format`; empty:
// there is none. UserError: as DocumentReader's and DocumentText's; no text at all.
std::vector<std::string> read_text_list(const std::filesystem::path& file, TextFormat format, const TextKeys& keys,
                                        BlankLines blank, std::string_view format_flag = kFormatFlag);

// Reads a whole file as one plain text, without a byte order mark. UserError: as DocumentReader's; the file is JSON
// lines, a JSON array or Parquet (`wanted` names what it should be: "the text of WikiText-103").
std::string read_plain_text(const std::filesystem::path& file, TextFormat format, std::string_view wanted);

}  // namespace teratron

// Files of prompts to continue.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

enum class PromptFormat {
  kByName,     // kJsonLines for a name that is_named_json_lines (data/text/input_files.h), else kLines
  kLines,      // a prompt a line
  kJsonLines,  // an object a line, with the prompt under "prompt" or, where there is none, "text"
};

// The prompts of a file, compressed or not, in its order; "-" is standard input. Lines end with \n or \r\n, the last
// one perhaps with nothing; blank lines are no prompts, but an empty text of JSON is one. UserError: as
// read_decompressed() and require_text(); a line that is not such an object, with its number; no prompt at all.
std::vector<std::string> read_prompts(const std::filesystem::path& file, PromptFormat format);

// The same of a text; `name` is for messages.
std::vector<std::string> prompts_of(std::string_view text, bool json_lines, std::string_view name);

}  // namespace teratron

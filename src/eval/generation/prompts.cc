#include "eval/generation/prompts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/decompression.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

constexpr std::string_view kMarkOfByteOrder = "\xEF\xBB\xBF";

std::string prompt_of_object(std::string_view line, std::string_view name, std::int64_t number) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) {
    for (const char* const key : {"prompt", "text"}) {
      const auto member = object.find(key);
      if (member == object.end()) continue;
      if (member->is_string()) return member->get<std::string>();
      throw_user_error("{}, line {}: \"{}\" is not a string; put the prompt in quotes", name, number, key);
    }
  }
  throw_user_error("{}, line {}: a line is to look like {{\"prompt\": \"the text to continue\"}}", name, number);
}

}  // namespace

std::vector<std::string> prompts_of(std::string_view text, bool json_lines, std::string_view name) {
  std::vector<std::string> prompts;
  if (text.starts_with(kMarkOfByteOrder)) text.remove_prefix(kMarkOfByteOrder.size());
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    prompts.push_back(json_lines ? prompt_of_object(line, name, number) : std::string(line));
  }
  if (prompts.empty()) throw_user_error("{} holds no prompt; write one on each line", name);
  return prompts;
}

std::vector<std::string> read_prompts(const std::filesystem::path& file, PromptFormat format) {
  const bool json_lines =
      format == PromptFormat::kJsonLines || (format == PromptFormat::kByName && is_named_json_lines(file));
  const std::string text = read_decompressed(file);
  require_text(text, 0, file);
  return prompts_of(text, json_lines, name_of_input(file));
}

}  // namespace teratron

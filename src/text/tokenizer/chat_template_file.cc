#include "tokenizer/chat_template_file.h"

#include <fmt/ranges.h>
#include <simdjson.h>

#include <system_error>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemplateKey = "chat_template";

fs::path folder_of(const fs::path& tokenizer) {
  std::error_code error;
  return fs::is_directory(tokenizer, error) ? tokenizer : tokenizer.parent_path();
}

// Puts the template in tokenizer_config.json, a text or a list of texts with names. Returns whether it is there.
bool read_template_in(const fs::path& config, ChatTemplateFile& file) {
  simdjson::dom::parser parser;
  const simdjson::dom::object root = read_json_object(config, parser, "a JSON object of settings");
  std::string_view text;
  if (!root[kTemplateKey].get(text)) {
    file.text = text;
    return true;
  }
  simdjson::dom::array list;
  if (root[kTemplateKey].get(list)) return false;
  std::vector<std::string_view> names;
  bool is_there = false;
  for (const simdjson::dom::element one : list) {
    names.push_back(text_or(one["name"], ""));
    if (one["template"].get(text)) continue;
    if (names.back() == "default") {
      file.text = text;
      is_there = true;
    }
    if (names.back() == "tool_use") file.tools_text = text;
  }
  if (is_there) return true;
  throw_user_error(
      "'{}' has {} chat templates and none that is named \"default\": {}; name one so, or put one into "
      "chat_template.jinja beside it",
      config.string(), names.size(), fmt::join(names, ", "));
}

}  // namespace

std::optional<ChatTemplateFile> find_chat_template(const fs::path& tokenizer) {
  const fs::path folder = folder_of(tokenizer), jinja = folder / "chat_template.jinja",
                 config = folder / "tokenizer_config.json";
  std::error_code error;
  ChatTemplateFile file{.path = config};
  if (fs::is_regular_file(jinja, error)) {
    file = read_chat_template(jinja, tokenizer);
  } else if (!fs::is_regular_file(config, error) || !read_template_in(config, file)) {
    return std::nullopt;
  } else {
    file.specials = TokenizerConfig(folder).special_texts();
  }
  for (const char* name : {"chat_template.tool_use.jinja", "additional_chat_templates/tool_use.jinja"}) {
    if (fs::is_regular_file(folder / name, error)) file.tools_text = read_file(folder / name);
  }
  return file;
}

ChatTemplateFile read_chat_template(const fs::path& file, const fs::path& tokenizer) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) {
    throw_user_error("there is no chat template '{}'; check the path", file.string());
  }
  return {.text = read_file(file), .path = file, .specials = TokenizerConfig(folder_of(tokenizer)).special_texts()};
}

}  // namespace teratron

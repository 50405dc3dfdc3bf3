// Chat template of a tokenizer: the text in Jinja's language by which a model wants conversations written.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace teratron {

struct ChatTemplateFile {
  std::string text;
  std::string tools_text{};                     // template of conversations with tools; empty: the same one
  std::filesystem::path path;                   // for messages
  std::map<std::string, std::string> specials;  // texts of special tokens by their names: "bos_token", ..
};

// Finds the template of the tokenizer in a folder, or beside the one of its files that is named: chat_template.jinja,
// else "chat_template" in tokenizer_config.json; of several templates there the one named "default". For conversations
// with tools that is additional_chat_templates/tool_use.jinja (of a checkpoint chat_template.tool_use.jinja), or the
// one named "tool_use". nullopt: there is none. UserError: tokenizer_config.json is damaged, or has templates of which
// none is named so.
std::optional<ChatTemplateFile> find_chat_template(const std::filesystem::path& tokenizer);

// Reads a template from a file of its own. The special tokens are those of the tokenizer. UserError: no such file.
ChatTemplateFile read_chat_template(const std::filesystem::path& file, const std::filesystem::path& tokenizer);

}  // namespace teratron

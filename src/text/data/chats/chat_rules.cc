#include "data/chats/chat_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "data/text/end_tokens.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

// The special token at the beginning of a text, after white space.
std::optional<std::int32_t> first_special(const Tokenizer& tokenizer, std::string_view text) {
  text = without_leading_space(text);
  if (text.empty()) return std::nullopt;
  const std::vector<std::int32_t> ids = tokenizer.encode(text, SpecialText::kToken);
  for (const std::int32_t id : ids) {
    const std::string_view bytes = tokenizer.bytes_of(id);
    if (text.starts_with(bytes) && tokenizer.special_token(bytes) == id) return id;
    if (!is_blank(bytes)) break;  // SentencePiece puts a space before
  }
  return std::nullopt;
}

ChatTemplateFile file_of(const std::filesystem::path& path, const std::filesystem::path& tokenizer,
                         const Tokenizer& tokens, bool is_given) {
  ChatTemplateFile file = is_given ? read_chat_template(path, tokenizer) : *find_chat_template(path);
  // Names that the files leave to transformers' classes.
  const auto name = [&](const char* key, std::optional<std::int32_t> id) {
    if (id) file.specials.emplace(key, tokens.bytes_of(*id));
  };
  name("bos_token", tokens.beginning_of_text());
  name("eos_token", tokens.end_of_text());
  return file;
}

}  // namespace

ChatRules find_chat_rules(const std::filesystem::path& folder, const std::filesystem::path& tokenizer,
                          const std::filesystem::path& given, const Tokenizer& tokens) {
  const std::filesystem::path& beside = tokenizer.empty() ? folder : tokenizer;
  ChatRules rules{.ends = end_tokens_of(folder, tokens)};
  if (given.empty()) {
    try {
      if (!find_chat_template(beside)) {
        rules.why_none = fmt::format(
            "the model has no chat template: beside its tokenizer there is neither chat_template.jinja nor a "
            "chat_template in tokenizer_config.json");
        return rules;
      }
      rules.form = std::make_shared<ChatTemplate>(file_of(beside, beside, tokens, false));
    } catch (const UserError& error) {
      rules.why_none = error.what();
      return rules;
    }
  } else {
    rules.form = std::make_shared<ChatTemplate>(file_of(given, beside, tokens, true));
  }
  if (const auto end = first_special(tokens, rules.form->after_answer())) rules.ends.push_back(*end);
  return rules;
}

}  // namespace teratron

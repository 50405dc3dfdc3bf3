#include "cli/checkpoint/gguf_tokenizer.h"

#include <utility>

#include "base/error.h"
#include "runtime/loaded_model.h"
#include "tokenizer/chat_template_file.h"
#include "tokenizer/gguf_vocabulary.h"

namespace teratron {
namespace {

GgufVocabulary vocabulary_in(const std::filesystem::path& folder, std::int64_t vocab_size) {
  try {
    return gguf_vocabulary(Tokenizer::load(folder), vocab_size);
  } catch (const UserError& error) {
    throw_user_error("the tokenizer in '{}' cannot go along: {}; to convert the weights alone, move its files away",
                     folder.string(), error.what());
  }
}

}  // namespace

GgufMetadata gguf_tokenizer(const std::filesystem::path& folder, std::int64_t vocab_size,
                            std::vector<std::string>& notes) {
  if (!holds_tokenizer(folder)) {
    notes.emplace_back("there is no tokenizer to go along: llama.cpp takes token ids alone from the file");
    return {{"tokenizer.ggml.model", std::string("none")}};
  }
  GgufVocabulary vocabulary = vocabulary_in(folder, vocab_size);
  notes.insert(notes.end(), vocabulary.notes.begin(), vocabulary.notes.end());
  GgufMetadata values = {{"tokenizer.ggml.model", vocabulary.model},
                         {"tokenizer.ggml.tokens", std::move(vocabulary.tokens)},
                         {"tokenizer.ggml.token_type", std::move(vocabulary.types)},
                         {"tokenizer.ggml.add_bos_token", vocabulary.adds_beginning},
                         {"tokenizer.ggml.add_eos_token", false},
                         {"tokenizer.ggml.add_space_prefix", vocabulary.adds_space},
                         {"tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(vocabulary.end_of_text)}};
  const auto add_id = [&](const char* key, std::optional<std::int32_t> id) {
    if (id) values.emplace_back(key, static_cast<std::uint32_t>(*id));
  };
  add_id("tokenizer.ggml.bos_token_id", vocabulary.beginning);
  add_id("tokenizer.ggml.unknown_token_id", vocabulary.unknown);
  if (auto chat = find_chat_template(folder)) values.emplace_back("tokenizer.chat_template", std::move(chat->text));
  if (!vocabulary.scores.empty()) values.emplace_back("tokenizer.ggml.scores", std::move(vocabulary.scores));
  if (vocabulary.splitter.empty()) return values;
  values.emplace_back("tokenizer.ggml.pre", vocabulary.splitter);
  values.emplace_back("tokenizer.ggml.merges", std::move(vocabulary.merges));
  return values;
}

}  // namespace teratron

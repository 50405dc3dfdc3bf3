// The files that GPT-2's own tools and Hugging Face's tokenizers read.
#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "tokenizer/bpe_files.h"
#include "tokenizer/byte_alphabet.h"

namespace teratron {
namespace {

// A JSON string. Text is UTF-8: of the byte alphabet, or of a special token that was read from JSON.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// How the files spell each token.
std::vector<std::string> spell_tokens(const BpeModel& model) {
  std::vector<std::string> spelled;
  for (const std::string& token : model.tokens) spelled.push_back(to_alphabet(token));
  for (const std::int32_t id : model.special) {
    spelled[static_cast<std::size_t>(id)] = model.tokens[static_cast<std::size_t>(id)];
  }
  return spelled;
}

std::string vocabulary_json(const std::vector<std::string>& spelled) {
  std::string out = "{";
  for (std::size_t id = 0; id < spelled.size(); ++id) {
    fmt::format_to(std::back_inserter(out), "{}{}: {}", id == 0 ? "" : ", ", json_string(spelled[id]), id);
  }
  return out + "}";
}

// Each merge as "left right", with `separator` between them.
std::string list_merges(const BpeModel& model, const std::vector<std::string>& spelled, std::string_view separator,
                        bool in_json) {
  std::string out;
  for (const BpeMerge& merge : model.merges) {
    const std::string line = fmt::format("{} {}", spelled[static_cast<std::size_t>(merge.left)],
                                         spelled[static_cast<std::size_t>(merge.right)]);
    if (!out.empty()) out += separator;
    out += in_json ? json_string(line) : line;
  }
  return out;
}

std::string added_tokens_json(const BpeModel& model, const std::vector<std::string>& spelled) {
  std::string out;
  for (const std::int32_t id : model.special) {
    fmt::format_to(std::back_inserter(out),
                   R"({}{{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, )"
                   R"("normalized": false, "special": true}})",
                   out.empty() ? "" : ", ", id, json_string(spelled[static_cast<std::size_t>(id)]));
  }
  return out;
}

std::string tokenizer_json(const BpeModel& model, const std::vector<std::string>& spelled) {
  constexpr std::string_view kByteLevel =
      R"({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true})";
  return fmt::format(R"({{"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{}],
"normalizer": null,
"pre_tokenizer": {},
"post_processor": {},
"decoder": {},
"model": {{"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
"end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
"vocab": {},
"merges": [{}]}}}}
)",
                     added_tokens_json(model, spelled), kByteLevel, kByteLevel, kByteLevel, vocabulary_json(spelled),
                     list_merges(model, spelled, ", ", true));
}

// Hugging Face's GPT-2 class adds "<|endoftext|>" to a vocabulary without it, so such a one goes by the general class.
std::string tokenizer_config_json(const BpeModel& model, const std::vector<std::string>& spelled) {
  std::string_view end_of_text;
  for (const std::int32_t id : model.special) {
    if (spelled[static_cast<std::size_t>(id)] == kEndOfText) end_of_text = kEndOfText;
  }
  if (end_of_text.empty()) return "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n";
  return fmt::format(R"({{"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": false, "bos_token": {0}, )"
                     R"("eos_token": {0}, "unk_token": {0}}})"
                     "\n",
                     json_string(end_of_text));
}

}  // namespace

void write_bpe_model(const BpeModel& model, const std::filesystem::path& folder) {
  const std::vector<std::string> spelled = spell_tokens(model);
  write_file_atomically(folder / "vocab.json", vocabulary_json(spelled) + "\n");
  write_file_atomically(folder / "merges.txt", "#version: 0.2\n" + list_merges(model, spelled, "\n", false) + "\n");
  write_file_atomically(folder / "tokenizer_config.json", tokenizer_config_json(model, spelled));
  write_file_atomically(folder / "tokenizer.json", tokenizer_json(model, spelled));
}

}  // namespace teratron

// The files that GPT-2's own tools and Hugging Face's tokenizers read.
#include <fmt/format.h>

#include <string_view>

#include "base/files/file.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/tokenizer_json.h"

namespace teratron {
namespace {

// The spelling of each token in files.
std::vector<std::string> spell_tokens(const BpeModel& model) {
  std::vector<std::string> spelled;
  for (const std::string& token : model.tokens) spelled.push_back(to_alphabet(token));
  for (const std::int32_t id : model.special) {
    spelled[static_cast<std::size_t>(id)] = model.tokens[static_cast<std::size_t>(id)];
  }
  return spelled;
}

// Each merge as "left right", joined by `separator`.
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

std::string bpe_json(const BpeModel& model, const std::vector<std::string>& spelled) {
  const std::string byte_level =
      fmt::format(R"({{"type": "ByteLevel", "add_prefix_space": {}, "trim_offsets": true, "use_regex": true}})",
                  model.add_prefix_space);
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
                     added_tokens_json(spelled, model.special), byte_level, byte_level, byte_level,
                     vocabulary_json(spelled), list_merges(model, spelled, ", ", true));
}

// Hugging Face's GPT-2 class adds "<|endoftext|>" to a vocabulary without it, so such a vocabulary needs the general
// class.
std::string bpe_config_json(const BpeModel& model, const std::vector<std::string>& spelled) {
  std::string_view end_of_text;
  for (const std::int32_t id : model.special) {
    if (spelled[static_cast<std::size_t>(id)] == model.end_of_text) end_of_text = model.end_of_text;
  }
  if (end_of_text.empty()) return "{\"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n";
  return fmt::format(R"({{"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": {1}, "bos_token": {0}, )"
                     R"("eos_token": {0}, "unk_token": {0}}})"
                     "\n",
                     json_string(end_of_text), model.add_prefix_space);
}

}  // namespace

void write_bpe_model(const BpeModel& model, const std::filesystem::path& folder) {
  const std::vector<std::string> spelled = spell_tokens(model);
  write_file_atomically(folder / "vocab.json", vocabulary_json(spelled) + "\n");
  write_file_atomically(folder / "merges.txt", "#version: 0.2\n" + list_merges(model, spelled, "\n", false) + "\n");
  write_file_atomically(folder / "tokenizer_config.json", bpe_config_json(model, spelled));
  write_file_atomically(folder / "tokenizer.json", bpe_json(model, spelled));
}

}  // namespace teratron

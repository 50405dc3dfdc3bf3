// The files that GPT-2's own tools and Hugging Face's tokenizers read.
#include <fmt/format.h>

#include <string_view>

#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/bpe/roberta.h"
#include "tokenizer/replace_files.h"
#include "tokenizer/tokenizer_json.h"

namespace teratron {
namespace {

std::string with_space_signs(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) byte == ' ' ? text += kSpaceSign : text += byte;
  return text;
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
  const BpePipeline& pipeline = model.pipeline;
  const bool has_unknown = pipeline.is_sentence_piece() && model.special_id("<unk>").has_value();
  return fmt::format(R"({{"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{}],
{},
"model": {{"type": "BPE", "dropout": null, "unk_token": {}, "continuing_subword_prefix": {},
"end_of_word_suffix": {}, "fuse_unk": {}, "byte_fallback": {}, "ignore_merges": {},
"vocab": {},
"merges": [{}]}}}}
)",
                     added_tokens_json(spelled, model.special, model.found),
                     bpe_pipeline_json(model, model.special_id(pipeline.beginning)), has_unknown ? "\"<unk>\"" : "null",
                     pipeline.is_sentence_piece() ? "null" : "\"\"", pipeline.is_sentence_piece() ? "null" : "\"\"",
                     pipeline.is_sentence_piece(), pipeline.is_sentence_piece(), pipeline.ignore_merges,
                     vocabulary_json(spelled), list_merges(model, spelled, ", ", true));
}

// Hugging Face's GPT-2 class adds "<|endoftext|>" to a vocabulary without it, so such a vocabulary needs the general
// class.
std::string bpe_config_json(const BpeModel& model) {
  if (roberta_tokens(model)) return roberta_config_json(model);
  const bool has_end = model.special_id(model.end_of_text).has_value();
  if (!has_end || !model.is_as_gpt2()) {
    std::string config = R"({"tokenizer_class": "PreTrainedTokenizerFast")";
    const std::string& beginning = model.pipeline.beginning;
    if (model.special_id(beginning)) config += fmt::format(R"(, "bos_token": {})", json_string(beginning));
    if (has_end) config += fmt::format(R"(, "eos_token": {})", json_string(model.end_of_text));
    return config + "}\n";
  }
  return fmt::format(R"({{"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": {1}, "bos_token": {0}, )"
                     R"("eos_token": {0}, "unk_token": {0}}})"
                     "\n",
                     json_string(model.end_of_text), model.pipeline.prefix != BpePrefix::kNever);
}

}  // namespace

std::vector<std::string> spell_tokens(const BpeModel& model) {
  const bool is_sentence_piece = model.pipeline.is_sentence_piece();
  std::vector<std::string> spelled;
  for (const std::string& token : model.tokens) {
    spelled.push_back(is_sentence_piece ? with_space_signs(token) : to_alphabet(token));
  }
  for (std::size_t byte = 0; byte < model.byte_tokens.size(); ++byte) {
    spelled[static_cast<std::size_t>(model.byte_tokens[byte])] = fmt::format("<0x{:02X}>", byte);
  }
  for (const auto* list : {&model.special, &model.found}) {
    for (const std::int32_t id : *list) {
      spelled[static_cast<std::size_t>(id)] = model.tokens[static_cast<std::size_t>(id)];
    }
  }
  return spelled;
}

void write_bpe_model(const BpeModel& model, const std::filesystem::path& folder) {
  const std::vector<std::string> spelled = spell_tokens(model);
  std::vector<std::pair<std::string, std::string>> files = {{"tokenizer_config.json", bpe_config_json(model)}};
  if (model.is_as_gpt2()) {
    files.emplace_back("merges.txt", "#version: 0.2\n" + list_merges(model, spelled, "\n", false) + "\n");
    files.emplace_back("vocab.json", vocabulary_json(spelled) + "\n");
  }
  files.emplace_back("tokenizer.json", bpe_json(model, spelled));
  replace_files(folder, files);
}

}  // namespace teratron

// Writes the files that Hugging Face's BERT tokenizers read.
#include <fmt/format.h>

#include "tokenizer/replace_files.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/word_piece/word_piece_files.h"

namespace teratron {
namespace {

std::string special_json(const WordPieceModel& model, std::int32_t id) {
  return json_string(model.tokens[static_cast<std::size_t>(id)]);
}

// One text is [CLS] A [SEP], two are [CLS] A [SEP] B [SEP].
std::string post_processor_json(const WordPieceModel& model) {
  const std::string classify = special_json(model, model.classify), separate = special_json(model, model.separate);
  const auto token = [](const std::string& text, int type) {
    return fmt::format(R"({{"SpecialToken": {{"id": {}, "type_id": {}}}}})", text, type);
  };
  const auto sequence = [](char name, int type) {
    return fmt::format(R"({{"Sequence": {{"id": "{}", "type_id": {}}}}})", name, type);
  };
  const auto described = [](const std::string& text, std::int32_t id) {
    return fmt::format(R"({0}: {{"id": {0}, "ids": [{1}], "tokens": [{0}]}})", text, id);
  };
  const std::string single = fmt::format("{}, {}, {}", token(classify, 0), sequence('A', 0), token(separate, 0));
  return fmt::format(
      R"({{"type": "TemplateProcessing", "single": [{0}], "pair": [{0}, {1}, {2}], "special_tokens": {{{3}, {4}}}}})",
      single, sequence('B', 1), token(separate, 1), described(classify, model.classify),
      described(separate, model.separate));
}

std::string word_piece_json(const WordPieceModel& model) {
  return fmt::format(R"({{"version": "1.0", "truncation": null, "padding": null,
"added_tokens": [{}],
"normalizer": {{"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": {}, "strip_accents": {}, "lowercase": {}}},
"pre_tokenizer": {{"type": "BertPreTokenizer"}},
"post_processor": {},
"decoder": {{"type": "WordPiece", "prefix": {}, "cleanup": {}}},
"model": {{"type": "WordPiece", "unk_token": {}, "continuing_subword_prefix": {}, "max_input_chars_per_word": {},
"vocab": {}}}}}
)",
                     added_tokens_json(model.tokens, model.special), model.split_chinese, model.strip_accents,
                     model.lower_case, post_processor_json(model), json_string(model.prefix), model.clean_up,
                     special_json(model, model.unknown), json_string(model.prefix), model.max_word_characters,
                     vocabulary_json(model.tokens));
}

std::string word_piece_config_json(const WordPieceModel& model) {
  return fmt::format(
      R"({{"tokenizer_class": "BertTokenizer", "do_lower_case": {}, "strip_accents": {}, "tokenize_chinese_chars": {}, )"
      R"("unk_token": {}, "pad_token": {}, "cls_token": {}, "sep_token": {}, "mask_token": {}}})"
      "\n",
      model.lower_case, model.strip_accents, model.split_chinese, special_json(model, model.unknown),
      special_json(model, model.pad), special_json(model, model.classify), special_json(model, model.separate),
      special_json(model, model.mask));
}

}  // namespace

void write_word_piece_model(const WordPieceModel& model, const std::filesystem::path& folder) {
  std::string vocabulary;
  for (const std::string& token : model.tokens) vocabulary += token + "\n";
  replace_files(folder, {{"tokenizer_config.json", word_piece_config_json(model)},
                         {"vocab.txt", vocabulary},
                         {"tokenizer.json", word_piece_json(model)}});
}

}  // namespace teratron

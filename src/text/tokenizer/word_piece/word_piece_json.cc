// WordPiece in a tokenizer.json.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/error.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/word_piece/word_piece_files.h"

namespace teratron {
namespace {

namespace dom = simdjson::dom;

class WordPieceJson {
 public:
  WordPieceJson(dom::object root, const std::string& file) : root_(root), file_(file) {}

  WordPieceModel read(const TokenizerConfig& config) const {
    WordPieceModel model;
    WordPieceNames names = word_piece_names(config);  // but for the unknown token, which the file names
    read_pipeline(model);
    read_model(model, names);
    finish_word_piece_model(model, names, file_);
    check_post_processor(model);
    return model;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("{} is not a WordPiece tokenizer as BERT's, the kind supported: {}", file_,
                     fmt::format(format, std::forward<Args>(args)...));
  }
  void require_step(const char* step, std::string_view type) const {
    const std::string_view found = type_of_step(root_, step);
    if (found != type) refuse("its {} is '{}', not {}", step, found.empty() ? "null" : found, type);
  }

  void read_pipeline(WordPieceModel& model) const {
    require_step("normalizer", "BertNormalizer");
    require_step("pre_tokenizer", "BertPreTokenizer");
    const auto normalizer = root_["normalizer"];
    if (!is_true(normalizer["clean_text"], true))
      refuse("its normalizer does not clean text (\"clean_text\" is false)");
    model.split_chinese = is_true(normalizer["handle_chinese_chars"], true);
    model.lower_case = is_true(normalizer["lowercase"], true);
    model.strip_accents = is_true(normalizer["strip_accents"], model.lower_case);
    require_step("decoder", "WordPiece");
    model.clean_up = is_true(root_["decoder"]["cleanup"], true);
  }

  void read_model(WordPieceModel& model, WordPieceNames& names) const {
    const auto described = root_["model"];
    names.unknown = text_or(described["unk_token"], names.unknown);
    model.prefix = text_or(described["continuing_subword_prefix"], model.prefix);
    if (text_or(root_["decoder"]["prefix"], "##") != model.prefix) {
      refuse("its decoder joins at '{}', and its model at '{}'", text_or(root_["decoder"]["prefix"], "##"),
             model.prefix);
    }
    std::int64_t most = model.max_word_characters;
    if (!described["max_input_chars_per_word"].error() &&
        (described["max_input_chars_per_word"].get(most) || most < 1 || most > std::numeric_limits<int>::max())) {
      refuse("its model's \"max_input_chars_per_word\" is not a whole number of 1 or more");
    }
    model.max_word_characters = static_cast<int>(most);
    dom::object listed;
    if (described["vocab"].get(listed)) refuse("its model has no object \"vocab\"");
    read_tokens(read_json_vocabulary(listed, file_), model);
  }

  void read_tokens(const std::vector<ListedToken>& vocabulary, WordPieceModel& model) const {
    std::vector<ListedToken> added;
    for (AddedToken& token : read_added_tokens(root_, file_)) {
      if (!token.refused.empty()) refuse("its added token '{}' sets \"{}\"", token.token.text, token.refused);
      if (!token.is_special)
        refuse("its added token '{}' is not special, and would be found within words", token.token.text);
      added.push_back(std::move(token.token));
    }
    for (const std::string_view text : texts_by_id(vocabulary, added, file_)) model.tokens.emplace_back(text);
    for (const ListedToken& token : added) model.special.push_back(static_cast<std::int32_t>(token.id));
  }

  // The text that encode() leaves to its callers must be theirs: [CLS], the text, [SEP].
  void check_post_processor(const WordPieceModel& model) const {
    const std::string_view type = type_of_step(root_, "post_processor");
    if (type.empty()) return;
    const auto text_of = [&](std::int32_t id) -> auto& { return model.tokens[static_cast<std::size_t>(id)]; };
    const std::string &classify = text_of(model.classify), &separate = text_of(model.separate);
    const auto step = root_["post_processor"];
    if (type == "BertProcessing") {
      if (is_framing_token(step["cls"], classify, model.classify) &&
          is_framing_token(step["sep"], separate, model.separate)) {
        return;
      }
      refuse("its post_processor frames texts by other tokens than {} and {} (\"cls\", \"sep\")", classify, separate);
    }
    if (type != "TemplateProcessing") refuse("its post_processor is '{}'", type);
    dom::array pieces;
    if (step["single"].get(pieces)) refuse("its post_processor has no list \"single\"");
    std::string found;
    for (const dom::element piece : pieces) {
      found += std::string(text_or(piece["SpecialToken"]["id"], text_or(piece["Sequence"]["id"], "?"))) + " ";
    }
    const std::string expected = classify + " A " + separate + " ";
    if (found != expected) refuse("its post_processor makes '{}' of a text A, not '{}'", found, expected);
  }

  dom::object root_;
  const std::string& file_;  // in quotes, for messages
};

}  // namespace

WordPieceModel read_word_piece_json(dom::object root, const std::string& file, const TokenizerConfig& config) {
  require_word_piece_class(config);
  WordPieceModel model = WordPieceJson(root, file).read(config);
  require_word_piece(config, model.tokens);
  const auto require_same = [&](const char* key, bool here) {
    if (config.flag(key).value_or(here) == here) return;
    config.refuse(fmt::format("its \"{}\" is {}, and {} says {}; make them agree", key, !here, file, here));
  };
  require_same("do_lower_case", model.lower_case);
  require_same("strip_accents", model.strip_accents);
  require_same("tokenize_chinese_chars", model.split_chinese);
  return model;
}

}  // namespace teratron

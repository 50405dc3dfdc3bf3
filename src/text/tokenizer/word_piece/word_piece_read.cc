// Reads WordPiece: vocab.txt and the settings beside it; checks their content and makes a model of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_piece/bert_characters.h"
#include "tokenizer/word_piece/word_piece_files.h"

namespace teratron {
namespace {

constexpr std::size_t kLongestToken = 4096;  // bytes; a word longer than 100 characters is [UNK]

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::string content = without_mark(read_file(path)), file = fmt::format("'{}'", path.string());
  std::vector<std::string> tokens;
  std::unordered_map<std::string, std::size_t> line_of;
  for (std::string_view rest = content; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string token(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (token.ends_with('\r')) token.pop_back();
    const std::size_t line = tokens.size() + 1;
    if (token.empty()) throw_user_error("{}, line {} is empty, and each line is a token; remove it", file, line);
    if (token.size() > kLongestToken) {
      throw_user_error("{}, line {} has {} bytes, and no token has more than {}; is this a vocabulary?", file, line,
                       token.size(), kLongestToken);
    }
    if (!is_utf8(token)) throw_user_error("{}, line {}: this is not valid UTF-8", file, line);
    if (token.back() == ' ' || token.back() == '\t') {
      throw_user_error("{}, line {}: there is white space after '{}'; a line is a token and nothing else", file, line,
                       token.substr(0, token.find_last_not_of(" \t") + 1));
    }
    const auto [before, is_new] = line_of.emplace(token, line);
    if (!is_new) throw_user_error("{}, line {}: token '{}' is in line {} already", file, line, token, before->second);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Letters with a lower case: BERT's uncased vocabulary holds U+211D, an upper-case R without one.
bool has_upper_case(std::string_view token) {
  while (!token.empty()) {
    const Utf8Step step = decode_utf8(token);
    if (*bert::to_lower(step.code).begin() != step.code) return true;
    token.remove_prefix(step.length);
  }
  return false;
}

}  // namespace

WordPieceNames word_piece_names(const TokenizerConfig& config) {
  WordPieceNames names;
  WordPieceModel model;
  names.each(model, [&](const char* key, std::string& text, std::int32_t&) {
    if (std::string named = config.special_text(key); !named.empty()) text = std::move(named);
  });
  return names;
}

WordPieceModel read_word_piece_vocabulary(const std::filesystem::path& path) {
  const TokenizerConfig config(path.parent_path());
  WordPieceModel model;
  model.tokens = read_lines(path);
  require_word_piece_class(config);
  const auto is_cased = [](const std::string& token) {
    return !is_written_like_a_special_token(token) && has_upper_case(token);
  };
  const std::optional<bool> lower_case = config.flag("do_lower_case");
  model.lower_case = lower_case ? *lower_case : std::ranges::none_of(model.tokens, is_cased);
  model.strip_accents = config.flag("strip_accents").value_or(model.lower_case);
  model.split_chinese = config.flag("tokenize_chinese_chars").value_or(true);
  finish_word_piece_model(model, word_piece_names(config), fmt::format("'{}'", path.string()));
  require_word_piece(config, model.tokens);
  return model;
}

namespace {

// Classes that make BERT's tokens.
constexpr auto kWordPieceClasses = std::to_array<std::string_view>(
    {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer", "LxmertTokenizer",
     "ConvBertTokenizer", "SqueezeBertTokenizer", "LayoutLMTokenizer", "RetriBertTokenizer",
     "DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer", "DPRReaderTokenizer", "RealmTokenizer",
     "MegatronBertTokenizer"});

}  // namespace

void require_word_piece_class(const TokenizerConfig& config) { config.require_class(kWordPieceClasses); }

void require_word_piece(const TokenizerConfig& config, std::span<const std::string> tokens) {
  if (!config.flag("do_basic_tokenize").value_or(true)) config.refuse("it sets \"do_basic_tokenize\" to false");
  for (const AddedToken& added : config.added_tokens()) {
    const std::string& text = added.token.text;
    const bool is_known = added.token.id >= 0 && std::cmp_less(added.token.id, tokens.size()) &&
                          tokens[static_cast<std::size_t>(added.token.id)] == text;
    if (!is_known) {
      config.refuse(fmt::format("it adds token '{}' with id {}, which the vocabulary has not; {}", text, added.token.id,
                                kSaveAsJson));
    }
    if (!added.refused.empty()) config.refuse(fmt::format("its added token '{}' sets \"{}\"", text, added.refused));
    if (is_written_like_a_special_token(text)) continue;
    config.refuse(fmt::format("its added token '{}' is a word too, and would be found within words", text));
  }
  config.require_tokens(tokens);
}

void finish_word_piece_model(WordPieceModel& model, WordPieceNames names, std::string_view file) {
  std::string missing;
  names.each(model, [&](const char*, const std::string& text, std::int32_t& id) {
    const auto found = std::ranges::find(model.tokens, text);
    if (found == model.tokens.end()) {
      missing += (missing.empty() ? "" : ", ") + text;
      return;
    }
    id = static_cast<std::int32_t>(found - model.tokens.begin());
    model.special.push_back(id);
  });
  if (!missing.empty()) {
    throw_user_error(
        "{} has no token {}; a WordPiece vocabulary needs [UNK], [PAD], [CLS], [SEP] and [MASK], by these names or by "
        "those that tokenizer_config.json gives them. Is the file complete?",
        file, missing);
  }
  std::ranges::sort(model.special);
  const auto repeated = std::ranges::unique(model.special);
  model.special.erase(repeated.begin(), repeated.end());
  validate(model, file);
}

}  // namespace teratron

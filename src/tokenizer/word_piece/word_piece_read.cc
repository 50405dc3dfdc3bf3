// vocab.txt and what stands beside it.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_piece/bert_characters.h"
#include "tokenizer/word_piece/word_piece_files.h"

namespace teratron {
namespace {

namespace dom = simdjson::dom;

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  const std::string content = read_file(path), file = fmt::format("'{}'", path.string());
  std::vector<std::string> tokens;
  std::unordered_map<std::string, std::size_t> line_of;
  for (std::string_view rest = content; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string token(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (token.ends_with('\r')) token.pop_back();
    const std::size_t line = tokens.size() + 1;
    if (token.empty()) throw_user_error("{}, line {} is empty, and each line is a token; remove it", file, line);
    if (!is_utf8(token)) throw_user_error("{}, line {}: this is not valid UTF-8", file, line);
    if (token.back() == ' ' || token.back() == '\t') {
      throw_user_error("{}, line {}: there is white space behind '{}'; a line is a token and nothing else", file, line,
                       token.substr(0, token.find_last_not_of(" \t") + 1));
    }
    const auto [before, is_new] = line_of.emplace(token, line);
    if (!is_new) throw_user_error("{}, line {}: token '{}' is in line {} already", file, line, token, before->second);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Letters that have a lower case: BERT's uncased vocabulary holds U+211D, an upper-case R that has none.
bool has_upper_case(std::string_view token) {
  while (!token.empty()) {
    const Utf8Step step = decode_utf8(token);
    if (*bert::to_lower(step.code).begin() != step.code) return true;
    token.remove_prefix(step.length);
  }
  return false;
}

// tokenizer_config.json, as far as it decides the ids.
class WordPieceConfig {
 public:
  explicit WordPieceConfig(const std::filesystem::path& path) : file_(fmt::format("'{}'", path.string())) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return;
    if (const auto fault = parser_.parse(read_file(path)).get(root_.emplace())) {
      throw_user_error("{} is not a JSON object: {}", file_, simdjson::error_message(fault));
    }
  }

  std::optional<bool> flag(const char* key) const {
    dom::element value;
    bool flag = false;
    if (!root_ || (*root_)[key].get(value) || value.is_null()) return std::nullopt;
    if (value.get(flag)) throw_user_error("{}: \"{}\" is neither true nor false", file_, key);
    return flag;
  }
  // A special token is a text, or an object with the text.
  std::string text(const char* key, const std::string& otherwise) const {
    if (!root_) return otherwise;
    const std::string_view plain = text_or((*root_)[key], "");
    return std::string(plain.empty() ? text_or((*root_)[key]["content"], otherwise) : plain);
  }
  // What makes other words than BERT's, and tokens that the vocabulary has not.
  void check(std::size_t tokens) const {
    if (!root_) return;
    if (!is_true((*root_)["do_basic_tokenize"], true)) refuse("it sets \"do_basic_tokenize\" to false");
    const std::string_view tokenizer = text_or((*root_)["tokenizer_class"], "");
    if (tokenizer.find("Japanese") != tokenizer.npos) refuse(fmt::format("its tokenizer is {}", tokenizer));
    dom::object added;
    if ((*root_)["added_tokens_decoder"].get(added)) return;
    for (const auto [id, token] : added) {
      const std::string text(id);
      if (std::strtoull(text.c_str(), nullptr, 10) < tokens) continue;
      refuse(
          fmt::format("it adds token '{}' with id {}, which vocab.txt has not; keep this tokenizer as tokenizer.json",
                      text_or(token["content"], ""), text));
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw_user_error("{} describes another tokenizer than BERT's: {}", file_, why);
  }

  std::string file_;
  dom::parser parser_;
  std::optional<dom::object> root_;
};

}  // namespace

WordPieceModel read_word_piece_vocabulary(const std::filesystem::path& path) {
  const WordPieceConfig config(path.parent_path() / "tokenizer_config.json");
  WordPieceModel model;
  model.tokens = read_lines(path);
  config.check(model.tokens.size());
  WordPieceNames names;
  names.each(model, [&](const char* key, std::string& text, std::int32_t&) { text = config.text(key, text); });
  const auto is_cased = [](const std::string& token) {
    return !is_written_like_a_special_token(token) && has_upper_case(token);
  };
  const std::optional<bool> lower_case = config.flag("do_lower_case");
  model.lower_case = lower_case ? *lower_case : std::ranges::none_of(model.tokens, is_cased);
  model.strip_accents = config.flag("strip_accents").value_or(model.lower_case);
  model.split_chinese = config.flag("tokenize_chinese_chars").value_or(true);
  finish_word_piece_model(model, names, fmt::format("'{}'", path.string()));
  return model;
}

}  // namespace teratron

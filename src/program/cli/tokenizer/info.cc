// teratron tokenizer info: contents of a tokenizer's files.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "tokenizer/tokenizer.h"

namespace teratron {
namespace {

struct TokenizerInfoOptions {
  std::filesystem::path tokenizer, json;
};

FieldList fields_of(TokenizerInfoOptions& o) {
  FieldList list;
  list.add_positional(&o.tokenizer, "DIR", "folder with the tokenizer's files, or one of them");
  add_json_field(list, o.json);
  return list;
}

// Description of either kind of tokenizer.
struct TokenizerDescription {
  nlohmann::ordered_json json;
  TextTable table{{Align::kLeft, Align::kRight}};

  void row(const char* title, std::int64_t number) { table.row({title, readable_integer(number)}); }
  void describe_tokens(const std::vector<std::string>& tokens) {
    std::size_t longest = 0;
    for (const std::string& token : tokens) longest = std::max(longest, token.size());
    json["longest_token_bytes"] = longest;
    row("longest token, in bytes", static_cast<std::int64_t>(longest));
  }
  void describe_special_tokens(const std::vector<std::string>& tokens, const std::vector<std::int32_t>& special) {
    json["special_tokens"] = nlohmann::ordered_json::object();
    for (const std::int32_t id : special) {
      const std::string& text = tokens[static_cast<std::size_t>(id)];
      json["special_tokens"][text] = id;
      table.row({"special " + text, fmt::format("{}", id)});
    }
  }
};

void describe_byte_pairs(const Tokenizer& tokenizer, TokenizerDescription& description) {
  const BpeModel& model = tokenizer.model();
  description.json["merges"] = model.merges.size();
  description.row("merges", static_cast<std::int64_t>(model.merges.size()));
  description.describe_tokens(model.tokens);
  description.json["end_of_text"] = nullptr;
  if (tokenizer.end_of_text()) description.json["end_of_text"] = *tokenizer.end_of_text();
  description.describe_special_tokens(model.tokens, model.special);
}

void describe_word_pieces(const Tokenizer& tokenizer, TokenizerDescription& description) {
  const WordPieceModel& model = tokenizer.word_piece();
  const auto flag = [&](const char* key, const char* title, bool is_set) {
    description.json[key] = is_set;
    description.table.row({title, is_set ? "yes" : "no"});
  };
  flag("lower_case", "lower case", model.lower_case);
  flag("strip_accents", "strips accents", model.strip_accents);
  flag("split_chinese", "splits Chinese", model.split_chinese);
  description.json["max_word_characters"] = model.max_word_characters;
  description.row("longest word, in characters", model.max_word_characters);
  description.describe_tokens(model.tokens);
  description.describe_special_tokens(model.tokens, model.special);
}

void run(const TokenizerInfoOptions& options) {
  const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
  const bool is_byte_pair = tokenizer.kind() == TokenizerKind::kBytePair;
  TokenizerDescription description;
  const char* const kind = !is_byte_pair                                    ? "WordPiece"
                           : tokenizer.model().pipeline.is_sentence_piece() ? "SentencePiece BPE"
                                                                            : "byte-level BPE";
  description.json = {{"kind", kind}, {"vocab_size", tokenizer.vocab_size()}};
  description.table.row({"kind", kind});
  description.row("vocabulary", tokenizer.vocab_size());
  (is_byte_pair ? describe_byte_pairs : describe_word_pieces)(tokenizer, description);
  report(options.json, description.table.text(0), description.json);
}

}  // namespace

Command tokenizer_info_command() {
  return make_command<TokenizerInfoOptions>("tokenizer info", "shows what a tokenizer holds", run);
}

}  // namespace teratron

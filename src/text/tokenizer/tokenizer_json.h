// Hugging Face's tokenizer.json (github.com/huggingface/tokenizers): a pipeline of steps. We take those of the
// families that the room's page lists, and refuse every other by name, since it would give other tokens. Also helpers
// for writing files.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

class TokenizerConfig;

// Reads the file's object if it describes BPE of a supported kind, or WordPiece as BERT's. `file` is for
// messages; `config` holds the settings beside it. UserError: the difference.
BpeModel read_bpe_json(simdjson::dom::object root, const std::string& file, const TokenizerConfig& config);
WordPieceModel read_word_piece_json(simdjson::dom::object root, const std::string& file, const TokenizerConfig& config);

// Values, or defaults if they are absent or of another type.
inline std::string_view text_or(simdjson::simdjson_result<simdjson::dom::element> value, std::string_view otherwise) {
  std::string_view text;
  return value.get(text) ? otherwise : text;
}
inline bool is_true(simdjson::simdjson_result<simdjson::dom::element> value, bool otherwise) {
  bool flag = false;
  return value.get(flag) ? otherwise : flag;
}

// Whether a value is a token as tokenizers' framing steps name it: [text, id].
inline bool is_framing_token(simdjson::simdjson_result<simdjson::dom::element> value, std::string_view text,
                             std::int64_t id) {
  simdjson::dom::array token;
  std::int64_t found = -1;
  return !value.get(token) && token.size() == 2 && text_or(token.at(0), "") == text && !token.at(1).get(found) &&
         found == id;
}

// The "type" of a step of the pipeline; empty if there is no such step.
std::string_view type_of_step(simdjson::dom::object root, const char* step);

// The model's object "vocab". UserError: an id that is no whole number.
std::vector<ListedToken> read_json_vocabulary(simdjson::dom::object vocabulary, std::string_view file);

// Parses an added token.
AddedToken added_token(simdjson::dom::element object, ListedToken token);
// Parses the list "added_tokens". UserError: a token without a text or an id.
std::vector<AddedToken> read_added_tokens(simdjson::dom::object root, std::string_view file);

// A file's content without a byte order mark.
std::string without_mark(std::string content);

// A file's JSON object, which lives as long as the parser; numbers may be as Python writes them (base/json_fields.h).
// UserError: it is no `kind`, such as "a tokenizer.json".
simdjson::dom::object read_json_object(const std::filesystem::path& path, simdjson::dom::parser& parser,
                                       std::string_view kind);

// Quotes a JSON string. The text is UTF-8: of the byte alphabet, or of a token that was read from JSON.
std::string json_string(std::string_view text);
// {"text": id, ...} of tokens in order of their ids.
std::string vocabulary_json(std::span<const std::string> tokens);
// The members of "added_tokens": special ones, and others that are found in every text.
std::string added_tokens_json(std::span<const std::string> tokens, std::span<const std::int32_t> special,
                              std::span<const std::int32_t> found = {});

}  // namespace teratron

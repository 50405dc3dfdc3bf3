// The files that Hugging Face's tools keep beside a vocabulary: tokenizer_config.json, special_tokens_map.json and
// added_tokens.json. Each kind of tokenizer takes the settings that decide its ids, as transformers does
// (tests/golden/side_files.json):
// - BPE reads add_prefix_space (of GPT-2's kind), added tokens, eos_token (it ends documents) and add_bos_token (of
//   Llama's class). It ignores `errors`, which concerns decoded text. It refuses add_bos_token beside vocab.json,
//   add_eos_token, an add_prefix_space that contradicts tokenizer.json, classes that add tokens (BART's), RoBERTa's
//   without its tokens, special tokens without an id, and options of added tokens.
// - WordPiece reads all that decides words, ignores the rest, and refuses other classes.
#pragma once

#include <simdjson.h>

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace teratron {

class TokenizerConfig {
 public:
  // Reads the files in a folder; a missing file has no settings. UserError: a file that is no JSON object.
  explicit TokenizerConfig(const std::filesystem::path& folder);

  const std::string& name() const;  // of the first file that exists, for messages
  // UserError: neither true nor false.
  std::optional<bool> flag(const char* key) const;
  // The text of a special token, given as a string or in an object; empty: none is named.
  std::string special_text(const char* key) const;
  // The texts of all named special tokens, by their keys; also those under names of the model's own, which templates
  // use.
  std::map<std::string, std::string> special_texts() const;
  std::string_view tokenizer_class() const;

  // Tokens declared with their ids, which the vocabulary may have, too.
  std::vector<AddedToken> added_tokens() const;

  // Whether the named class is one of these, with or without "Fast" at its end.
  bool is_of_class(std::span<const std::string_view> known) const;
  // UserError if the named class is none of these (is_of_class), and no general one.
  void require_class(std::span<const std::string_view> known) const;
  // UserError if a named special token is not among `tokens`, so that transformers would give it a new id; or is
  // written like a word ("eos", not "<eos>"), so that it would be found inside words.
  void require_tokens(std::span<const std::string> tokens) const;
  [[noreturn]] void refuse(std::string_view why) const;

 private:
  struct File {
    explicit File(const std::filesystem::path& path);
    std::string name;  // in quotes, for messages
    bool is_there = false;
    simdjson::dom::parser parser;
    simdjson::dom::object root;
  };
  struct NamedToken {
    std::string key, text;
  };
  std::vector<NamedToken> special_tokens() const;
  bool is_special(std::string_view text) const;

  File config_, map_, added_;
};

// Advice for files with settings that are not read.
inline constexpr std::string_view kSaveAsJson =
    "keep it as tokenizer.json, which AutoTokenizer.from_pretrained(IN).save_pretrained(OUT) writes";

}  // namespace teratron

// What Hugging Face's tools keep beside a vocabulary: tokenizer_config.json, special_tokens_map.json and
// added_tokens.json. Each kind of tokenizer takes from it what decides its ids, and refuses the rest by name.
#pragma once

#include <simdjson.h>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace teratron {

class TokenizerConfig {
 public:
  // Of a folder; a file that is not there says nothing. UserError: one that is no JSON object.
  explicit TokenizerConfig(const std::filesystem::path& folder);

  const std::string& name() const;  // of the first of its files that is there, for messages
  // UserError: neither true nor false.
  std::optional<bool> flag(const char* key) const;
  // Of a special token: its text, whether it stands as such or in an object; empty: none is named.
  std::string special_text(const char* key) const;
  std::string_view tokenizer_class() const;

  // Tokens that are declared with their ids, which the vocabulary may have too.
  std::vector<AddedToken> added_tokens() const;

  // Whether the class that is named is one of these, with or without "Fast" behind it.
  bool is_of_class(std::span<const std::string_view> known) const;
  // UserError where a class that is named is none of these (is_of_class), and no general one.
  void require_class(std::span<const std::string_view> known) const;
  // UserError where a special token that is named is not among `tokens`, so that transformers would give it an id of
  // its own; or is written as words are ("eos", not "<eos>"), so that it would be found within words.
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

// What to do with a tokenizer whose files say more than is read of them.
inline constexpr std::string_view kSaveAsJson =
    "keep it as tokenizer.json, which AutoTokenizer.from_pretrained(IN).save_pretrained(OUT) writes";

}  // namespace teratron

// Tokens and their ids as listed in files, and special tokens in text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

struct ListedToken {
  std::string text;
  std::int64_t id = 0;
};

// A token that the files declare beside the vocabulary.
struct AddedToken {
  ListedToken token;
  bool is_special;
  std::string_view refused;    // an option that changes where the token is found; empty: none
  bool is_normalized = false;  // found in the normalized text
};

// The text of each id. An added token may be listed in the vocabulary, too, under the same id. UserError, naming
// `file`, unless the ids are 0, 1, ... without gaps, no text is empty, and each has one id. Views of the lists' texts.
std::vector<std::string_view> texts_by_id(std::span<const ListedToken> vocabulary, std::span<const ListedToken> added,
                                          std::string_view file);

// Whether a token is written like one that stands for no text: "<...>" or "[...]".
bool is_written_like_a_special_token(std::string_view text);

class SpecialTokens {
 public:
  // The tokens with the ids `special` of a vocabulary.
  SpecialTokens(std::span<const std::string> tokens, std::span<const std::int32_t> special);

  struct Match {
    std::size_t position;
    std::size_t length;
    std::int32_t id;
  };
  // The first special token in `text`, the longest one if several begin at the same offset.
  std::optional<Match> find(std::string_view text) const;
  // The id of the special token that is exactly `text`.
  std::optional<std::int32_t> id_of(std::string_view text) const;

 private:
  struct Entry {
    std::string text;
    std::int32_t id;
  };
  std::vector<Entry> entries_;  // the longest first
  std::array<bool, 256> begins_{};
  std::vector<bool> goes_on_;  // [first byte * 256 + second byte]
};

}  // namespace teratron

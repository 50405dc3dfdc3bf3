// Tokens and their ids as files list them.
#pragma once

#include <cstdint>
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
  std::string_view refused;  // an option that changes which text it is found in; empty: none is set
};

// The text of each id. An added token may be listed in the vocabulary too, under the same id. UserError, naming `file`,
// unless the ids are 0, 1, ... without gaps, no text is empty, and each has one id. Views of the lists' texts.
std::vector<std::string_view> texts_by_id(std::span<const ListedToken> vocabulary, std::span<const ListedToken> added,
                                          std::string_view file);

// Written like a token that stands for no text: "<...>" or "[...]".
bool is_written_like_a_special_token(std::string_view text);

}  // namespace teratron

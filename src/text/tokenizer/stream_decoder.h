// Decodes tokens one by one, for a terminal: a character may span several tokens, and only whole characters are
// returned.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizer/tokenizer.h"

namespace teratron {

// The results of push() and finish() are valid UTF-8, each by itself: bytes that cannot be part of a character become
// U+FFFD, one for each maximal part of a character (Unicode 16, section 3.9), as in Python's decode(errors="replace").
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // The characters that this token completes; empty while the last one is still open.
  std::string push(std::int32_t id) { return push_bytes(tokenizer_.bytes_of(id)); }
  std::string push_bytes(std::string_view bytes);
  // The rest at the end: U+FFFD if a character is incomplete, otherwise empty.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  std::string pending_;  // the beginning of a character, at most 3 bytes
};

}  // namespace teratron

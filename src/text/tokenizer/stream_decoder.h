// Tokens to text as they come, for a terminal: a character may be spread over several tokens, and only whole
// characters are ever handed out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizer/tokenizer.h"

namespace teratron {

// What push() and finish() return is, together and each by itself, valid UTF-8: bytes that cannot be part of a
// character become U+FFFD, one for each maximal part of a character (Unicode 16, section 3.9), as in Python's
// decode(errors="replace").
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer) : tokenizer_(std::move(tokenizer)) {}

  // The characters that this token completes; empty while the last one is still open.
  std::string push(std::int32_t id) { return push_bytes(tokenizer_.bytes_of(id)); }
  std::string push_bytes(std::string_view bytes);
  // What is left at the end: U+FFFD where a character was begun and not ended, else nothing.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  std::string pending_;  // the beginning of a character, at most 3 bytes
};

}  // namespace teratron

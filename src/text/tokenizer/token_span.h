// A token and its bytes in the text.
#pragma once

#include <cstdint>

namespace teratron {

struct TokenSpan {
  std::int32_t id = 0;
  std::uint32_t begin = 0, end = 0;  // bytes of the text
  bool operator==(const TokenSpan&) const = default;
};

}  // namespace teratron

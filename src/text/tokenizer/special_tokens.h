// Finds special tokens, such as "<|endoftext|>" and "[MASK]", in text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

class SpecialTokens {
 public:
  // The tokens that stand at the ids `special` of a vocabulary.
  SpecialTokens(std::span<const std::string> tokens, std::span<const std::int32_t> special);

  struct Match {
    std::size_t position;
    std::size_t length;
    std::int32_t id;
  };
  // The first special token in `text`, the longest one where several begin at the same place.
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
};

}  // namespace teratron

// Checks that all values of a tensor are finite, of one in memory or of one that comes in pieces.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/dtype.h"

namespace teratron {

class FiniteValues {
 public:
  explicit FiniteValues(DType dtype) : dtype_(dtype) {}

  void update(std::span<const std::byte> bytes);  // the next ones, of any number
  bool all() const { return all_; }               // of the values that have come whole

 private:
  DType dtype_;
  bool all_ = true;
  std::array<std::byte, 8> begun_{};  // a value of which some bytes have come
  std::size_t begun_bytes_ = 0;
};

// UserError where a value of `tensor`, which `folder` holds as `bytes` of `dtype`, is not finite.
void require_finite(std::span<const std::byte> bytes, DType dtype, std::string_view tensor,
                    const std::filesystem::path& folder);

}  // namespace teratron

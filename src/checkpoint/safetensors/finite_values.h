// Whether the values of a tensor that passes by are all finite.
#pragma once

#include <array>
#include <cstddef>
#include <span>

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

}  // namespace teratron

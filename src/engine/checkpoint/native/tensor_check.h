// Checks of a tensor's bytes on their way to a file: their checksum, and whether all values are finite.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/dtype.h"
#include "base/files/checksum.h"
#include "checkpoint/safetensors/finite_values.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

class TensorCheck {
 public:
  explicit TensorCheck(DType dtype) : finite_(dtype) {}

  // The next bytes. They go to `next` in parts, each while a core's cache has it.
  void update(std::span<const std::byte> bytes, const ByteSink& next = {}) {
    constexpr std::size_t kCached = std::size_t{128} << 10;
    for (std::span<const std::byte> part; !bytes.empty(); bytes = bytes.subspan(part.size())) {
      part = bytes.first(std::min(bytes.size(), kCached));
      checksum_.update(part);
      finite_.update(part);
      bytes_ += part.size();
      if (next) next(part);
    }
  }

  std::uint64_t bytes() const { return bytes_; }
  std::string checksum() const { return checksum_.digest(); }
  bool is_finite() const { return finite_.all(); }

 private:
  Checksum checksum_;
  FiniteValues finite_;
  std::uint64_t bytes_ = 0;
};

}  // namespace teratron

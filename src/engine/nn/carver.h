// Carver: layers declare their memory by cutting the tensors of a call off a run of memory. Over no memory the same
// code counts the bytes, so the plan is what is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/round_up.h"
#include "tensor/tensor.h"

namespace teratron {

// The sizes of one call, or of the largest that memory is planned for.
struct CallSizes {
  std::int64_t batch = 1, tokens = 0;  // sequences, and tokens of each in this call
  int tensor_ranks = 1;
  bool sequence_parallel = false;
  DType compute = DType::kF32, accumulation = DType::kF32;

  std::int64_t rows() const { return batch * tokens; }
  // The residual stream on this rank: [batch, tokens, hidden], or a rank's rows of it [1, rows, hidden]
  // (nn/layer_pass.h).
  std::int64_t stream_rows() const { return sequence_parallel ? rows() / tensor_ranks : rows(); }
  Shape stream_shape(std::int64_t hidden) const {
    if (!sequence_parallel) return {batch, tokens, hidden};
    return {1, stream_rows(), hidden};
  }
};

// Cuts tensors off a run of memory, one after another. Over no memory it counts their bytes; the tensors are null then.
class Carver {
 public:
  Carver() = default;
  explicit Carver(void* memory) : memory_(static_cast<std::byte*>(memory)) {}

  TensorRef take(DType dtype, const Shape& shape) {
    TensorRef tensor(memory_ == nullptr ? nullptr : memory_ + bytes_, dtype, shape);
    bytes_ += round_up(tensor.bytes(), kAlignment);
    return tensor;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  static constexpr std::int64_t kAlignment = 128;  // bytes between the starts of tensors: cache-line pairs
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace teratron

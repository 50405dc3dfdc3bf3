// A graph of tensors and operations as cuDNN's graph API knows them, but as plain data: cudnn_graph_descriptor.h says
// it to the library, and tests/emulated_gpu computes it with loops, which is how graphs are proven without a GPU.
//
// Tensors have four axes. The library recognises a graph by its operations, their order and their types, so what builds
// one says all of these. Types are kF32, kBF16, kF16, kI32, and kU8 for truth values.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/dtype.h"

namespace teratron::cuda {

using Extents = std::array<std::int64_t, 4>;

// Of a matrix in each [batch, head]: rows and columns change places.
constexpr Extents transposed(const Extents& extents) { return {extents[0], extents[1], extents[3], extents[2]}; }
Extents contiguous_strides(const Extents& sizes);

struct GraphTensor {
  enum class Kind {
    kMemory,        // given or wanted: bound to device memory when the graph runs
    kValue,         // one number on the host, part of the graph
    kIntermediate,  // never stored
  };
  Kind kind = Kind::kIntermediate;
  DType dtype = DType::kF32;
  Extents sizes{}, strides{};  // strides in elements
  float number = 0;            // kValue of kF32
  std::int32_t integer = 0;    // kValue of kI32

  // For the library, which reads it there when the graph runs.
  const void* address_of_value() const { return dtype == DType::kI32 ? static_cast<const void*>(&integer) : &number; }
};

enum class Pointwise {
  kIdentity,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kExp,
  kLog,
  kIndexAlongAxis,  // y = the place along `axis`, whatever x holds
  kGreaterOrEqual,  // y = x >= b
  kSelect,          // y = condition ? x : b
};
enum class Reduction { kSum, kMax };

using TensorId = int;  // the place in Graph::tensors()
constexpr TensorId kNoTensor = -1;

struct GraphOperation {
  enum class Kind {
    kMatmul,     // y = x b, of the last two axes
    kPointwise,  // y = f(x, b); axes of b, or of x for kIdentity, that have size 1 are repeated
    kReduction,  // y = sum or maximum of x along the axes that have size 1 in y
    kReshape,    // y = x with its last two axes exchanged
  };
  Kind kind = Kind::kPointwise;
  Pointwise pointwise = Pointwise::kIdentity;
  Reduction reduction = Reduction::kSum;
  TensorId x = kNoTensor, b = kNoTensor, condition = kNoTensor, y = kNoTensor;
  DType compute = DType::kF32;
  int axis = -1;  // -1: not said
};

// Functions named as operations add one. Those that return a tensor make an intermediate of kF32 for the result; those
// named ..._to write to the tensor given.
class Graph {
 public:
  const std::vector<GraphTensor>& tensors() const { return tensors_; }
  const std::vector<GraphOperation>& operations() const { return operations_; }
  const GraphTensor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }

  TensorId memory(DType dtype, const Extents& sizes, const Extents& strides);
  TensorId value(float number);
  TensorId value(std::int32_t integer);
  TensorId intermediate(DType dtype, const Extents& sizes, const Extents& strides);
  TensorId intermediate(DType dtype, const Extents& sizes);  // contiguous

  TensorId matmul(TensorId x, TensorId b);
  void matmul_to(TensorId y, TensorId x, TensorId b);
  TensorId pointwise(Pointwise function, TensorId x, TensorId b = kNoTensor);
  void pointwise_to(TensorId y, Pointwise function, TensorId x, TensorId b = kNoTensor);
  TensorId reduce(Reduction reduction, TensorId x);  // along the last axis
  TensorId transpose(TensorId x, DType dtype);       // an intermediate over the same places as x, of another type
  TensorId index(TensorId like, int axis);           // of kI32
  TensorId shifted_index(Pointwise function, TensorId index, TensorId shift);
  TensorId at_least(TensorId x, TensorId b);  // of truth values
  TensorId select(TensorId condition, TensorId x, TensorId otherwise);

 private:
  TensorId add(const GraphTensor& tensor);

  std::vector<GraphTensor> tensors_;
  std::vector<GraphOperation> operations_;
};

}  // namespace teratron::cuda

#include "ops/cuda/cudnn/cudnn_graph.h"

namespace teratron::cuda {
namespace {

constexpr Extents kOne = {1, 1, 1, 1};

}  // namespace

Extents contiguous_strides(const Extents& sizes) {
  return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
}

TensorId Graph::add(const GraphTensor& tensor) {
  tensors_.push_back(tensor);
  return static_cast<TensorId>(tensors_.size()) - 1;
}

TensorId Graph::memory(DType dtype, const Extents& sizes, const Extents& strides) {
  return add({.kind = GraphTensor::Kind::kMemory, .dtype = dtype, .sizes = sizes, .strides = strides});
}

TensorId Graph::value(float number) {
  return add({.kind = GraphTensor::Kind::kValue, .sizes = kOne, .strides = kOne, .number = number});
}

TensorId Graph::value(std::int32_t integer) {
  return add(
      {.kind = GraphTensor::Kind::kValue, .dtype = DType::kI32, .sizes = kOne, .strides = kOne, .integer = integer});
}

TensorId Graph::intermediate(DType dtype, const Extents& sizes, const Extents& strides) {
  return add({.kind = GraphTensor::Kind::kIntermediate, .dtype = dtype, .sizes = sizes, .strides = strides});
}

TensorId Graph::intermediate(DType dtype, const Extents& sizes) {
  return intermediate(dtype, sizes, contiguous_strides(sizes));
}

void Graph::matmul_to(TensorId y, TensorId x, TensorId b) {
  operations_.push_back({.kind = GraphOperation::Kind::kMatmul, .x = x, .b = b, .y = y});
}

TensorId Graph::matmul(TensorId x, TensorId b) {
  Extents sizes = tensor(x).sizes;
  sizes[3] = tensor(b).sizes[3];
  const TensorId y = intermediate(DType::kF32, sizes);
  matmul_to(y, x, b);
  return y;
}

void Graph::pointwise_to(TensorId y, Pointwise function, TensorId x, TensorId b) {
  operations_.push_back({.pointwise = function, .x = x, .b = b, .y = y});
}

TensorId Graph::pointwise(Pointwise function, TensorId x, TensorId b) {
  const TensorId y = intermediate(DType::kF32, tensor(x).sizes);
  pointwise_to(y, function, x, b);
  return y;
}

TensorId Graph::reduce(Reduction reduction, TensorId x) {
  Extents sizes = tensor(x).sizes;
  sizes[3] = 1;
  const TensorId y = intermediate(DType::kF32, sizes);
  operations_.push_back({.kind = GraphOperation::Kind::kReduction, .reduction = reduction, .x = x, .y = y});
  return y;
}

TensorId Graph::transpose(TensorId x, DType dtype) {
  const TensorId y = intermediate(dtype, transposed(tensor(x).sizes), transposed(tensor(x).strides));
  operations_.push_back({.kind = GraphOperation::Kind::kReshape, .x = x, .y = y});
  return y;
}

TensorId Graph::index(TensorId like, int axis) {
  const TensorId y = intermediate(DType::kI32, tensor(like).sizes);
  operations_.push_back({.pointwise = Pointwise::kIndexAlongAxis, .x = like, .y = y, .axis = axis});
  return y;
}

TensorId Graph::shifted_index(Pointwise function, TensorId index, TensorId shift) {
  const TensorId y = intermediate(DType::kI32, tensor(index).sizes);
  operations_.push_back({.pointwise = function, .x = index, .b = shift, .y = y, .compute = DType::kI32, .axis = 3});
  return y;
}

TensorId Graph::at_least(TensorId x, TensorId b) {
  const TensorId y = intermediate(DType::kU8, tensor(x).sizes);
  operations_.push_back({.pointwise = Pointwise::kGreaterOrEqual, .x = x, .b = b, .y = y, .compute = DType::kU8});
  return y;
}

TensorId Graph::select(TensorId condition, TensorId x, TensorId otherwise) {
  const TensorId y = intermediate(DType::kF32, tensor(x).sizes);
  operations_.push_back({.pointwise = Pointwise::kSelect, .x = x, .b = otherwise, .condition = condition, .y = y});
  return y;
}

}  // namespace teratron::cuda

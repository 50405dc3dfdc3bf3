#include "ops/cuda/cudnn/cudnn_graph_descriptor.h"

#include "base/error.h"

namespace teratron::cuda {
namespace {

constexpr std::int64_t kAlignment = 16;  // bytes: what takes_cudnn() demands of memory

cudnnDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kF32: return CUDNN_DATA_FLOAT;
    case DType::kBF16: return CUDNN_DATA_BFLOAT16;
    case DType::kF16: return CUDNN_DATA_HALF;
    case DType::kI32: return CUDNN_DATA_INT32;
    case DType::kU8: return CUDNN_DATA_BOOLEAN;
    default: throw InternalError(fmt::format("no graph for cuDNN has tensors of {}", name_of(dtype)));
  }
}

cudnnPointwiseMode_t mode_of(Pointwise function) {
  switch (function) {
    case Pointwise::kIdentity: return CUDNN_POINTWISE_IDENTITY;
    case Pointwise::kAdd: return CUDNN_POINTWISE_ADD;
    case Pointwise::kSubtract: return CUDNN_POINTWISE_SUB;
    case Pointwise::kMultiply: return CUDNN_POINTWISE_MUL;
    case Pointwise::kDivide: return CUDNN_POINTWISE_DIV;
    case Pointwise::kExp: return CUDNN_POINTWISE_EXP;
    case Pointwise::kLog: return CUDNN_POINTWISE_LOG;
    case Pointwise::kIndexAlongAxis: return CUDNN_POINTWISE_GEN_INDEX;
    case Pointwise::kGreaterOrEqual: return CUDNN_POINTWISE_CMP_GE;
    case Pointwise::kSelect: return CUDNN_POINTWISE_BINARY_SELECT;
  }
  throw InternalError("an unknown function of elements");
}

Descriptor describe(const CudnnLibrary& library, const GraphTensor& tensor, std::int64_t id) {
  Descriptor made(library, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type_of(tensor.dtype));
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(tensor.sizes));
  made.set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(tensor.strides));
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment);
  made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.kind == GraphTensor::Kind::kIntermediate);
  made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, tensor.kind == GraphTensor::Kind::kValue);
  made.finalize();
  return made;
}

// What an operation computes, apart from what on. Exchanging axes needs none.
Descriptor describe_matmul(const CudnnLibrary& library, const GraphOperation& operation) {
  Descriptor made(library, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "a matrix product");
  made.set(CUDNN_ATTR_MATMUL_COMP_TYPE, type_of(operation.compute));
  made.finalize();
  return made;
}

Descriptor describe_pointwise(const CudnnLibrary& library, const GraphOperation& operation) {
  Descriptor made(library, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "a function of elements");
  made.set(CUDNN_ATTR_POINTWISE_MODE, mode_of(operation.pointwise));
  made.set(CUDNN_ATTR_POINTWISE_MATH_PREC, type_of(operation.compute));
  if (operation.axis >= 0) made.set(CUDNN_ATTR_POINTWISE_AXIS, std::int64_t{operation.axis});
  made.finalize();
  return made;
}

Descriptor describe_reduction(const CudnnLibrary& library, const GraphOperation& operation) {
  Descriptor made(library, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "a reduction");
  made.set(CUDNN_ATTR_REDUCTION_OPERATOR,
           operation.reduction == Reduction::kSum ? CUDNN_REDUCE_TENSOR_ADD : CUDNN_REDUCE_TENSOR_MAX);
  made.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, type_of(operation.compute));
  made.finalize();
  return made;
}

// Makes an operation from its function and the graph's tensors.
class OperationMaker {
 public:
  OperationMaker(const CudnnLibrary& library, const std::vector<Descriptor>& tensors,
                 std::vector<Descriptor>& functions)
      : library_(library), tensors_(tensors), functions_(functions) {}

  Descriptor make(const GraphOperation& operation) {
    switch (operation.kind) {
      case GraphOperation::Kind::kMatmul: return matmul(operation);
      case GraphOperation::Kind::kPointwise: return pointwise(operation);
      case GraphOperation::Kind::kReduction: return reduction(operation);
      case GraphOperation::Kind::kReshape: return reshape(operation);
    }
    throw InternalError("an unknown operation");
  }

 private:
  const Descriptor& tensor(TensorId id) const { return tensors_[static_cast<std::size_t>(id)]; }

  Descriptor matmul(const GraphOperation& operation) {
    functions_.push_back(describe_matmul(library_, operation));
    Descriptor made(library_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "the operation of a matrix product");
    made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensor(operation.x));
    made.set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensor(operation.b));
    made.set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensor(operation.y));
    made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, functions_.back());
    made.finalize();
    return made;
  }

  Descriptor pointwise(const GraphOperation& operation) {
    functions_.push_back(describe_pointwise(library_, operation));
    Descriptor made(library_, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "the operation of a function of elements");
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, functions_.back());
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensor(operation.x));
    if (operation.b != kNoTensor) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensor(operation.b));
    if (operation.condition != kNoTensor) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensor(operation.condition));
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensor(operation.y));
    made.finalize();
    return made;
  }

  Descriptor reduction(const GraphOperation& operation) {
    functions_.push_back(describe_reduction(library_, operation));
    Descriptor made(library_, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "the operation of a reduction");
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, functions_.back());
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensor(operation.x));
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensor(operation.y));
    made.finalize();
    return made;
  }

  Descriptor reshape(const GraphOperation& operation) {
    Descriptor made(library_, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "the operation of an exchange of axes");
    made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, tensor(operation.x));
    made.set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, tensor(operation.y));
    made.finalize();
    return made;
  }

  const CudnnLibrary& library_;
  const std::vector<Descriptor>& tensors_;
  std::vector<Descriptor>& functions_;
};

}  // namespace

GraphDescriptor::GraphDescriptor(const CudnnLibrary& library, const Graph& graph, cudnnHandle_t handle)
    : graph_(library, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "a graph") {
  for (const GraphTensor& tensor : graph.tensors()) {
    tensors_.push_back(describe(library, tensor, unique_id(static_cast<TensorId>(tensors_.size()))));
  }
  OperationMaker maker(library, tensors_, functions_);
  for (const GraphOperation& operation : graph.operations()) operations_.push_back(maker.make(operation));
  if (handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations_));
  graph_.finalize();
}

}  // namespace teratron::cuda

// cuDNN's graphs on the emulated GPU: what src/ops/cuda/cudnn_engine.h promises, with loops, in fp32, each result
// rounded to its tensor's type. A graph that agrees with the reference here says what it should; whether the library
// has kernels for it only a GPU can show.
#include "ops/cuda/cudnn/cudnn_engine.h"

#include <cmath>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/float_types.h"

namespace teratron::cuda {
namespace {

constexpr std::int64_t kAlignment = 16, kWorkspace = 512;  // bytes
constexpr std::int64_t kRefusedHeadSize = 80;              // so that our own kernels' turn is tested too

// The elements of a tensor, contiguous.
using Values = std::vector<float>;

std::int64_t count_of(const GraphTensor& tensor) {
  return tensor.sizes[0] * tensor.sizes[1] * tensor.sizes[2] * tensor.sizes[3];
}

// Calls visit(n, offset) for the n-th element, which lies `offset` elements from the first; `strides` may repeat axes.
template <class Visit>
void for_each_element(const Extents& sizes, const Extents& strides, const Visit& visit) {
  std::size_t n = 0;
  for (std::int64_t b = 0; b < sizes[0]; ++b) {
    for (std::int64_t h = 0; h < sizes[1]; ++h) {
      for (std::int64_t row = 0; row < sizes[2]; ++row) {
        std::int64_t offset = b * strides[0] + h * strides[1] + row * strides[2];
        for (std::int64_t column = 0; column < sizes[3]; ++column, offset += strides[3]) visit(n++, offset);
      }
    }
  }
}

// Strides with which a contiguous tensor of `sizes` is read as one of `like`: axes of size 1 are repeated.
Extents repeating_strides(const Extents& sizes, const Extents& like) {
  Extents strides = contiguous_strides(sizes);
  for (std::size_t axis = 0; axis < 4; ++axis) {
    check(sizes[axis] == like[axis] || sizes[axis] == 1, "an axis of the other operand is alike or 1");
    if (sizes[axis] == 1) strides[axis] = 0;
  }
  return strides;
}

float rounded(DType dtype, float value) {
  if (dtype == DType::kI32 || dtype == DType::kU8) return std::trunc(value);
  return visit_floating(dtype, [&]<class T>(ElementType<T>) { return static_cast<float>(static_cast<T>(value)); });
}

float apply(const GraphOperation& operation, float x, float b, float condition) {
  switch (operation.pointwise) {
    case Pointwise::kIdentity: return x;
    case Pointwise::kAdd: return x + b;
    case Pointwise::kSubtract: return x - b;
    case Pointwise::kMultiply: return x * b;
    case Pointwise::kDivide: return x / b;
    case Pointwise::kExp: return std::exp(x);
    case Pointwise::kLog: return std::log(x);
    case Pointwise::kGreaterOrEqual: return x >= b ? 1.0F : 0.0F;
    case Pointwise::kSelect: return condition != 0 ? x : b;
    case Pointwise::kIndexAlongAxis: break;
  }
  throw InternalError("no function of values");
}

// One run of a graph.
class Run {
 public:
  Run(const Graph& graph, std::span<const Binding> bindings) : graph_(graph), values_(graph.tensors().size()) {
    for (const Binding& binding : bindings) {
      const GraphTensor& tensor = graph.tensor(binding.tensor);
      check(tensor.kind == GraphTensor::Kind::kMemory, "bound is memory");
      check_equal(reinterpret_cast<std::uintptr_t>(binding.memory) % kAlignment, 0U, "place of bound memory");
      check(memory_.emplace(binding.tensor, binding.memory).second, "memory is bound once");
    }
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const bool is_memory = graph.tensors()[i].kind == GraphTensor::Kind::kMemory;
      check(!is_memory || memory_.contains(static_cast<TensorId>(i)), "all memory is bound");
    }
    check_that_workspace_is_apart();
  }

  void compute(void* workspace) {
    for (const GraphOperation& operation : graph_.operations()) {
      const GraphTensor& y = graph_.tensor(operation.y);
      Values result = compute(operation, y);
      for (float& value : result) value = rounded(y.dtype, value);
      // Read from there again where it is needed: what shares memory by mistake is seen.
      if (y.kind == GraphTensor::Kind::kMemory) {
        store(operation.y, result);
        std::memset(workspace, 0xff, kWorkspace);
      } else {
        values_[static_cast<std::size_t>(operation.y)] = std::move(result);
      }
    }
  }

 private:
  // What kernels keep in fp32 they may read and write at any time.
  void check_that_workspace_is_apart() const {
    std::multimap<const std::byte*, const std::byte*> ranges;  // begin and end
    for (const auto& [id, memory] : memory_) {
      const GraphTensor& tensor = graph_.tensor(id);
      const auto* const begin = static_cast<const std::byte*>(memory);
      if (tensor.dtype == DType::kF32) ranges.emplace(begin, begin + count_of(tensor) * size_of(tensor.dtype));
    }
    const std::byte* last = nullptr;
    for (const auto& [begin, end] : ranges) {
      check(begin >= last, "tensors of fp32 lie apart");
      last = end;
    }
  }

  Values compute(const GraphOperation& operation, const GraphTensor& y) {
    switch (operation.kind) {
      case GraphOperation::Kind::kMatmul: return matmul(operation, y);
      case GraphOperation::Kind::kPointwise: return pointwise(operation, y);
      case GraphOperation::Kind::kReduction: return reduction(operation, y);
      case GraphOperation::Kind::kReshape: return exchanged(operation, y);
    }
    return {};
  }

  Values matmul(const GraphOperation& operation, const GraphTensor& y) {
    const Values &x = read(operation.x), &b = read(operation.b);
    const auto terms = graph_.tensor(operation.x).sizes[3], rows = y.sizes[2], columns = y.sizes[3];
    check_equal(graph_.tensor(operation.b).sizes[2], terms, "terms of a product");
    Values sums(static_cast<std::size_t>(count_of(y)));
    for (std::int64_t row = 0; row < y.sizes[0] * y.sizes[1] * rows; ++row) {
      float* const to = &sums[static_cast<std::size_t>(row * columns)];
      for (std::int64_t k = 0; k < terms; ++k) {
        const float factor = x[static_cast<std::size_t>(row * terms + k)];
        const float* const from = &b[static_cast<std::size_t>((row / rows * terms + k) * columns)];
        for (std::int64_t column = 0; column < columns; ++column) to[column] += factor * from[column];
      }
    }
    return sums;
  }

  Values pointwise(const GraphOperation& operation, const GraphTensor& y) {
    Values result(static_cast<std::size_t>(count_of(y)));
    if (operation.pointwise == Pointwise::kIndexAlongAxis) {
      Extents steps = {};
      steps[static_cast<std::size_t>(operation.axis)] = 1;
      for_each_element(y.sizes, steps,
                       [&](std::size_t n, std::int64_t place) { result[n] = static_cast<float>(place); });
      return result;
    }
    const Values &x = read(operation.x), none(1);
    const Values& b = operation.b == kNoTensor ? none : read(operation.b);
    const Values& condition = operation.condition == kNoTensor ? none : read(operation.condition);
    const Extents repeated =
        operation.b == kNoTensor ? Extents{} : repeating_strides(graph_.tensor(operation.b).sizes, y.sizes);
    for_each_element(y.sizes, repeated, [&](std::size_t n, std::int64_t place) {
      result[n] = apply(operation, x[n], b[static_cast<std::size_t>(place)], condition[condition.size() > 1 ? n : 0]);
    });
    return result;
  }

  Values reduction(const GraphOperation& operation, const GraphTensor& y) {
    const bool is_sum = operation.reduction == Reduction::kSum;
    const Values& x = read(operation.x);
    Values result(static_cast<std::size_t>(count_of(y)), is_sum ? 0 : -INFINITY);
    const Extents& sizes = graph_.tensor(operation.x).sizes;
    for_each_element(sizes, repeating_strides(y.sizes, sizes), [&](std::size_t n, std::int64_t place) {
      float& to = result[static_cast<std::size_t>(place)];
      to = is_sum ? to + x[n] : std::max(to, x[n]);
    });
    return result;
  }

  Values exchanged(const GraphOperation& operation, const GraphTensor& y) {
    const GraphTensor& x = graph_.tensor(operation.x);
    check(x.sizes == transposed(y.sizes) && x.strides == transposed(y.strides), "the same places");
    const Values& from = read(operation.x);
    Values result(from.size());
    for_each_element(y.sizes, transposed(contiguous_strides(x.sizes)),
                     [&](std::size_t n, std::int64_t place) { result[n] = from[static_cast<std::size_t>(place)]; });
    return result;
  }

  const Values& read(TensorId id) {
    Values& values = values_[static_cast<std::size_t>(id)];
    const GraphTensor& tensor = graph_.tensor(id);
    if (!values.empty()) return values;
    values.resize(static_cast<std::size_t>(count_of(tensor)));
    if (tensor.kind == GraphTensor::Kind::kValue) {
      values[0] = tensor.dtype == DType::kI32 ? static_cast<float>(tensor.integer) : tensor.number;
      return values;
    }
    check(tensor.kind == GraphTensor::Kind::kMemory, "an intermediate is made before it is read");
    visit_floating(tensor.dtype, [&]<class T>(ElementType<T>) {
      const T* const memory = static_cast<const T*>(memory_.at(id));
      for_each_element(tensor.sizes, tensor.strides,
                       [&](std::size_t n, std::int64_t place) { values[n] = static_cast<float>(memory[place]); });
    });
    return values;
  }

  void store(TensorId id, const Values& values) {
    const GraphTensor& tensor = graph_.tensor(id);
    visit_floating(tensor.dtype, [&]<class T>(ElementType<T>) {
      T* const memory = static_cast<T*>(memory_.at(id));
      for_each_element(tensor.sizes, tensor.strides,
                       [&](std::size_t n, std::int64_t place) { memory[place] = static_cast<T>(values[n]); });
    });
  }

  const Graph& graph_;
  std::vector<Values> values_;  // empty: not read or made yet
  std::map<TensorId, void*> memory_;
};

}  // namespace

struct CudnnEngine::Library {};
struct CudnnEngine::Plan {
  Graph graph;
};

CudnnEngine::CudnnEngine(cudaStream_t) {}
CudnnEngine::~CudnnEngine() = default;

std::shared_ptr<const CudnnEngine::Plan> CudnnEngine::plan(const Graph& graph) {
  for (const GraphTensor& tensor : graph.tensors()) {
    if (tensor.kind == GraphTensor::Kind::kMemory && tensor.sizes[3] == kRefusedHeadSize) {
      throw_environment_error("the emulated cuDNN refuses heads of {}", kRefusedHeadSize);
    }
  }
  return std::make_shared<Plan>(Plan{graph});
}

std::int64_t CudnnEngine::workspace_bytes(const Plan&) { return kWorkspace; }

void CudnnEngine::run(const Plan& plan, std::span<const Binding> bindings, void* workspace) {
  Run(plan.graph, bindings).compute(workspace);
}

}  // namespace teratron::cuda

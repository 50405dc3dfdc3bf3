// Linear layers: products by cuBLASLt, and passes for the work that is not in their epilogues (fusion.h).
#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "base/error.h"
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/elements.h"
#include "ops/cuda/linear/activation.h"
#include "ops/cuda/linear/column_sum.h"
#include "ops/cuda/linear/fusion.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256;

template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads) activate_all(T* activated, const T* values, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    activated[i] = narrowed<T>(activate<kActivation>(widened(values[i])).value);
  }
}

template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads) activate_vectors(T* activated, const T* values, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    Vector<T> vector = load_vector(values + i * Vector<T>::kSize);
    for (int e = 0; e < Vector<T>::kSize; ++e) {
      vector[e] = narrowed<T>(activate<kActivation>(widened(vector[e])).value);
    }
    store_vector(activated + i * Vector<T>::kSize, vector);
  }
}

// activated = activation(gate) * y.
template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads) open_gate(T* activated, const T* gate, const T* y, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    activated[i] = narrowed<T>(activate<kActivation>(widened(gate[i])).value * widened(y[i]));
  }
}

// y = sums + bias of the column.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_bias(T* y, const float* sums, const T* bias, std::int64_t count, std::int64_t columns) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    y[i] = narrowed<T>(sums[i] + widened(bias[i % columns]));
  }
}

// dx = gradient * slope at u; activated = value at u, which may lie where u does, or be null.
template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads)
    multiply_by_slope(T* dx, const float* gradient, const T* u, T* activated, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const ValueAndSlope at = activate<kActivation>(widened(u[i]));
    dx[i] = narrowed<T>(gradient[i] * at.slope);
    if (activated != nullptr) activated[i] = narrowed<T>(at.value);
  }
}

// For x = activation(gate) * u: dx = gradient * activation(gate), dgate = gradient * u * slope at the gate, which may
// lie where the gate does, and activated = x, which may lie where u does, or be null.
template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads) differentiate_gate(T* dx, T* dgate, const float* gradient, const T* u,
                                                               const T* gate, T* activated, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const ValueAndSlope open = activate<kActivation>(widened(gate[i]));
    const float value = widened(u[i]);
    dx[i] = narrowed<T>(gradient[i] * open.value);
    dgate[i] = narrowed<T>(gradient[i] * value * open.slope);
    if (activated != nullptr) activated[i] = narrowed<T>(open.value * value);
  }
}

template <class T, Activation kActivation>
void activate_view(cudaStream_t stream, const TensorRef& activated, const TensorRef& values) {
  T* const to = activated.as<T>();
  const T* const from = values.as<T>();
  const std::int64_t count = values.elements();
  if (takes_vectors(to) && takes_vectors(from) && count % Vector<T>::kSize == 0) {
    const std::int64_t vectors = count / Vector<T>::kSize;
    launch(stream, shape_for(vectors, kThreads), activate_vectors<T, kActivation>, to, from, vectors);
  } else {
    launch(stream, shape_for(count, kThreads), activate_all<T, kActivation>, to, from, count);
  }
}

// call(std::integral_constant) with one that is not kNone.
template <class Call>
void with_activation(Activation activation, const Call& call) {
  if (activation == Activation::kGeluTanh) {
    call(std::integral_constant<Activation, Activation::kGeluTanh>());
  } else if (activation == Activation::kSilu) {
    call(std::integral_constant<Activation, Activation::kSilu>());
  } else {
    call(std::integral_constant<Activation, Activation::kGeluErf>());
  }
}

// Parts of the back end that an operation uses.
struct Context {
  cudaStream_t stream;
  Scratch& scratch;
  Gemm& gemm;
  DType dtype;
};

// For each operation: its candidates, in the order in which they are taken if nothing is timed; the number of sums that
// pass between the product and our passes; the product; and the passes.

std::span<const Fusion> fusions_of(const LinearForward& args) {
  static constexpr std::array kCandidates = {Fusion::kBias, Fusion::kGelu};
  return std::span(kCandidates).first(args.activation == Activation::kGeluTanh && !args.gate ? 2 : 1);
}

std::int64_t sums_of(const LinearForward& args, Fusion fusion) {
  return fusion == Fusion::kNothing && args.bias ? args.y.elements() : 0;
}

Product product_of(const LinearForward& args, Fusion fusion, float* sums) {
  Product product{.c = args.y, .a = args.x, .b = args.weight, .transpose_b = true};
  if (fusion != Fusion::kNothing) product.bias = args.bias;
  if (fusion == Fusion::kNothing && args.bias) product.c = TensorRef(sums, DType::kF32, args.y.shape);
  if (fusion == Fusion::kGelu) {
    product.c = args.activated;
    product.before_gelu = args.y;
  }
  return product;
}

void finish(const Context& context, const LinearForward& args, Fusion fusion, const float* sums) {
  choose_by_storage(context.dtype, [&]<class T>(ElementType<T>) {
    if (fusion == Fusion::kNothing && args.bias) {
      launch(context.stream, shape_for(args.y.elements(), kThreads), add_bias<T>, args.y.as<T>(), sums,
             args.bias.as<T>(), args.y.elements(), args.y.dim(1));
    }
    if (fusion == Fusion::kGelu || args.activation == Activation::kNone) return;
    with_activation(args.activation, [&](auto activation) {
      constexpr Activation kActivation = decltype(activation)::value;
      if (!args.gate) return activate_view<T, kActivation>(context.stream, args.activated, args.y);
      launch(context.stream, shape_for(args.y.elements(), kThreads), open_gate<T, kActivation>, args.activated.as<T>(),
             args.gate.as<T>(), args.y.as<T>(), args.y.elements());
    });
  });
}

std::span<const Fusion> fusions_of(const LinearInputGradient& args) {
  static constexpr std::array kCandidates = {Fusion::kGeluGradient, Fusion::kNothing};
  return std::span(kCandidates).subspan(args.activation == Activation::kGeluTanh && !args.gate ? 0 : 1);
}

std::int64_t sums_of(const LinearInputGradient& args, Fusion fusion) {
  return fusion == Fusion::kNothing && args.activation != Activation::kNone ? args.dx.elements() : 0;
}

Product product_of(const LinearInputGradient& args, Fusion fusion, float* sums) {
  Product product{.c = args.dx, .a = args.dy, .b = args.weight};
  if (sums_of(args, fusion) > 0) product.c = TensorRef(sums, DType::kF32, args.dx.shape);
  if (fusion == Fusion::kGeluGradient) product.gelu_input = args.pre_activation;
  return product;
}

void finish(const Context& context, const LinearInputGradient& args, Fusion fusion, const float* sums) {
  if (args.activation == Activation::kNone) return;
  choose_by_storage(context.dtype, [&]<class T>(ElementType<T>) {
    with_activation(args.activation, [&](auto activation) {
      constexpr Activation kActivation = decltype(activation)::value;
      T* const activated = args.activated ? args.activated.as<T>() : nullptr;
      if (fusion == Fusion::kGeluGradient) {
        if (activated != nullptr) activate_view<T, kActivation>(context.stream, args.activated, args.pre_activation);
        return;
      }
      if (args.gate) {
        return launch(context.stream, shape_for(args.dx.elements(), kThreads), differentiate_gate<T, kActivation>,
                      args.dx.as<T>(), args.dgate.as<T>(), sums, args.pre_activation.as<T>(), args.gate.as<T>(),
                      activated, args.dx.elements());
      }
      launch(context.stream, shape_for(args.dx.elements(), kThreads), multiply_by_slope<T, kActivation>,
             args.dx.as<T>(), sums, args.pre_activation.as<T>(), activated, args.dx.elements());
    });
  });
}

std::span<const Fusion> fusions_of(const LinearWeightGradient& args) {
  static constexpr std::array kCandidates = {Fusion::kNothing, Fusion::kBiasGradient};
  return std::span(kCandidates).first(args.dbias ? 2 : 1);
}

std::int64_t sums_of(const LinearWeightGradient& args, Fusion fusion) {
  if (!args.dbias) return 0;
  const std::int64_t rows = args.dy.dim(0), columns = args.dy.dim(1);
  if (fusion == Fusion::kNothing) return column_sum_parts(rows) * columns;
  return args.accumulate ? columns : 0;  // the library only overwrites a bias gradient
}

Product product_of(const LinearWeightGradient& args, Fusion fusion, float* sums) {
  Product product{.c = args.dweight, .a = args.dy, .b = args.x, .transpose_a = true, .accumulate = args.accumulate};
  if (fusion != Fusion::kBiasGradient) return product;
  product.bias_gradient = args.accumulate ? TensorRef(sums, DType::kF32, args.dbias.shape) : args.dbias;
  return product;
}

void finish(const Context& context, const LinearWeightGradient& args, Fusion fusion, float* sums) {
  if (!args.dbias) return;
  float* const dbias = args.dbias.as<float>();
  const std::int64_t rows = args.dy.dim(0), columns = args.dy.dim(1);
  if (fusion == Fusion::kBiasGradient) {
    if (args.accumulate) add_parts(context.stream, sums, 1, columns, dbias, true);
    return;
  }
  choose_by_storage(context.dtype, [&]<class T>(ElementType<T>) {
    sum_rows(context.stream, args.dy.as<T>(), rows, columns, sums, dbias, args.accumulate);
  });
}

// Copy of a call whose outputs may be written again and again; outputs that are still needed are replaced by `spare`.
LinearForward rehearsal_of(const LinearForward& args, Scratch&) { return args; }

// A call with a gate has one candidate and is never rehearsed.
LinearInputGradient rehearsal_of(const LinearInputGradient& args, Scratch& spare) {
  LinearInputGradient result = args;
  if (overlap(args.activated, args.pre_activation)) result.activated.data = spare.bytes(args.activated.bytes());
  return result;
}

LinearWeightGradient rehearsal_of(const LinearWeightGradient& args, Scratch& spare) {
  LinearWeightGradient result = args;
  if (!args.accumulate) return result;
  const std::int64_t vector = (args.dbias.elements() + 63) / 64 * 64;  // dweight begins at an aligned address too
  float* const memory = spare.of<float>(vector + args.dweight.elements());
  result.dbias.data = memory;
  result.dweight.data = memory + vector;
  return result;
}

template <class Arguments>
class LinearCall final : public FusibleOperation {
 public:
  LinearCall(const Context& context, const Arguments& args)
      : context_(context), args_(args), fusions_(fusions_of(args)) {}

  void run() {
    const Fusion longest = std::ranges::max(fusions_);  // as they are declared
    const Product whole = product_of(args_, longest, sums_in(context_.scratch, longest));
    if (compute(args_, context_.gemm.choose(whole, *this), context_.scratch)) return;
    check(compute(args_, Fusion::kNothing, context_.scratch), "a product without an epilogue is always there");
  }

  std::span<const Fusion> fusions() const override { return fusions_; }

  bool can_compute(Fusion fusion) override {
    try {
      const Product product = product_of(args_, fusion, sums_in(context_.scratch, fusion));
      return product.is_plain() || context_.gemm.can_fuse(product);
    } catch (const EnvironmentError&) {
      cudaGetLastError();  // and forget it
      return false;
    }
  }

  bool rehearse(Fusion fusion) override {
    if (!rehearsal_) rehearsal_ = rehearsal_of(args_, spare_outputs_);
    return compute(*rehearsal_, fusion, spare_sums_);
  }

 private:
  float* sums_in(Scratch& scratch, Fusion fusion) const { return scratch.of<float>(sums_of(args_, fusion)); }

  // False where the library lacks the product: nothing was computed.
  bool compute(const Arguments& args, Fusion fusion, Scratch& scratch) {
    float* const sums = sums_in(scratch, fusion);
    const Product product = product_of(args, fusion, sums);
    if (product.is_plain()) {
      context_.gemm.multiply(product);
    } else if (!context_.gemm.try_fused(product)) {
      return false;
    }
    finish(context_, args, fusion, sums);
    return true;
  }

  const Context& context_;
  const Arguments& args_;
  const std::span<const Fusion> fusions_;
  // Memory of rehearsals, released afterwards: a candidate that is not taken may need larger sums than the others.
  Scratch spare_outputs_{context_.stream}, spare_sums_{context_.stream};
  std::optional<Arguments> rehearsal_;
};

}  // namespace
}  // namespace cuda

void CudaBackend::do_linear_forward(const LinearForward& args) {
  const cuda::Context context{stream_, scratch_, gemm_, compute_dtype_};
  cuda::LinearCall(context, args).run();
}

void CudaBackend::do_tile_linear_forward(const TileLinearForward&) {
  throw_user_error(
      "the CUDA back end has no operation tile_linear_forward, which --weights needs; take --backend cpu or leave it "
      "out");
}

// Layers ask has_frozen_linear() first.
void CudaBackend::do_frozen_linear_forward(const FrozenLinearForward&) {
  throw InternalError("the CUDA back end has no operation frozen_linear_forward");
}
void CudaBackend::do_frozen_linear_input_gradient(const FrozenLinearInputGradient&) {
  throw InternalError("the CUDA back end has no operation frozen_linear_input_gradient");
}

void CudaBackend::do_linear_input_gradient(const LinearInputGradient& args) {
  const cuda::Context context{stream_, scratch_, gemm_, compute_dtype_};
  cuda::LinearCall(context, args).run();
}

void CudaBackend::do_linear_weight_gradient(const LinearWeightGradient& args) {
  const cuda::Context context{stream_, scratch_, gemm_, compute_dtype_};
  cuda::LinearCall(context, args).run();
}

}  // namespace teratron

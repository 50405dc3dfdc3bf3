// Linear layers: products by cuBLASLt, and passes for the work that is not in their epilogues (fusion.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>

#include "base/error.h"
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/linear/column_sum.h"
#include "ops/cuda/linear/fusion.h"
#include "ops/cuda/linear/passes.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

// Parts of the back end that an operation uses.
struct Context {
  cudaStream_t stream;
  Scratch& scratch;
  Gemm& gemm;
  DType dtype;
};

// For each operation: its candidates, in the order in which they are taken if nothing is timed; the number of sums that
// pass between the product and our passes; the product; and the passes, by name where they differ between calls.

std::span<const Fusion> fusions_of(const LinearForward& args) {
  static constexpr std::array kCandidates = {Fusion::kBias, Fusion::kGelu};
  return std::span(kCandidates).first(args.activation == Activation::kGeluTanh && !args.gate ? 2 : 1);
}

std::string passes_of(const LinearForward&) { return {}; }

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
      launch(context.stream, shape_for(args.y.elements(), kPassThreads), add_bias<T>, args.y.as<T>(), sums,
             args.bias.as<T>(), args.y.elements(), args.y.dim(1));
    }
    if (fusion == Fusion::kGelu || args.activation == Activation::kNone) return;
    with_activation(args.activation, [&](auto activation) {
      constexpr Activation kActivation = decltype(activation)::value;
      if (!args.gate) return activate_view<T, kActivation>(context.stream, args.activated, args.y);
      open_gates<T, kActivation>(context.stream, args);
    });
  });
}

std::span<const Fusion> fusions_of(const LinearInputGradient& args) {
  static constexpr std::array kCandidates = {Fusion::kGeluGradient, Fusion::kNothing, Fusion::kRounded};
  if (args.activation == Activation::kNone) return std::span(kCandidates).subspan(1, 1);
  const std::size_t first = args.activation == Activation::kGeluTanh && !args.gate ? 0 : 1;
  const std::size_t last = args.dx.dtype == DType::kF32 ? 2 : 3;  // which rounds nothing
  return std::span(kCandidates).subspan(first, last - first);
}

std::string passes_of(const LinearInputGradient& args) {
  if (args.activation == Activation::kNone) return {};
  return fmt::format(" with activation {}{}{}", static_cast<int>(args.activation), args.gate ? ", gate" : "",
                     args.activated ? ", made again" : "");
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
      if (fusion == Fusion::kGeluGradient) {
        if (args.activated) activate_view<T, kActivation>(context.stream, args.activated, args.pre_activation);
      } else if (fusion == Fusion::kRounded) {
        differentiate_activation<T, T, kActivation>(context.stream, args, args.dx.as<const T>());
      } else {
        differentiate_activation<T, float, kActivation>(context.stream, args, sums);
      }
    });
  });
}

std::span<const Fusion> fusions_of(const LinearWeightGradient& args) {
  static constexpr std::array kCandidates = {Fusion::kNothing, Fusion::kBiasGradient};
  return std::span(kCandidates).first(args.dbias ? 2 : 1);
}

std::string passes_of(const LinearWeightGradient&) { return {}; }

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

LinearInputGradient rehearsal_of(const LinearInputGradient& args, Scratch& spare) {
  LinearInputGradient result = args;
  const bool has_value = overlap(args.activated, args.pre_activation), has_gate = overlap(args.dgate, args.gate);
  if (!has_value && !has_gate) return result;
  void* const memory = spare.bytes(args.dx.bytes());  // both may lie there: nothing reads them
  if (has_value) result.activated.data = memory;
  if (has_gate) result.dgate.data = memory;
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
  std::string passes() const override { return passes_of(args_); }

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

// Linear layers: a product by cuBLASLt with the bias or the derivative of GELU in it, and passes for the rest.
#include "base/error.h"
#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/elements.h"
#include "ops/cuda/linear/activation.h"
#include "ops/cuda/linear/column_sum.h"
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

// y = sums + bias of the column.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_bias(T* y, const float* sums, const T* bias, std::int64_t count, std::int64_t columns) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    y[i] = narrowed<T>(sums[i] + widened(bias[i % columns]));
  }
}

// dx = gradient * slope at u; activated = value at u, which may lie where u does.
template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads)
    multiply_by_slope(T* dx, const float* gradient, const T* u, T* activated, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const ValueAndSlope at = activate<kActivation>(widened(u[i]));
    dx[i] = narrowed<T>(gradient[i] * at.slope);
    activated[i] = narrowed<T>(at.value);
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
  } else {
    call(std::integral_constant<Activation, Activation::kGeluErf>());
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_linear_forward(const LinearForward& args) {
  cuda::Product product{.c = args.y, .a = args.x, .b = args.weight, .transpose_b = true, .bias = args.bias};
  if (!args.bias) {
    gemm_.multiply(product);
  } else if (!gemm_.try_fused(product)) {
    product.bias = {};
    product.c = TensorRef(scratch_.of<float>(args.y.elements()), DType::kF32, args.y.shape);
    gemm_.multiply(product);
    choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
      cuda::launch(stream_, cuda::shape_for(args.y.elements(), cuda::kThreads), cuda::add_bias<T>, args.y.as<T>(),
                   product.c.as<float>(), args.bias.as<T>(), args.y.elements(), args.y.dim(1));
    });
  }
  if (args.activation == Activation::kNone) return;
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    cuda::with_activation(args.activation, [&](auto activation) {
      cuda::activate_view<T, decltype(activation)::value>(stream_, args.activated, args.y);
    });
  });
}

void CudaBackend::do_linear_input_gradient(const LinearInputGradient& args) {
  cuda::Product product{.c = args.dx, .a = args.dy, .b = args.weight};
  if (args.activation == Activation::kNone) return gemm_.multiply(product);
  if (args.activation == Activation::kGeluTanh) product.gelu_input = args.pre_activation;
  const bool fused = product.gelu_input && gemm_.try_fused(product);
  if (!fused) {
    product.gelu_input = {};
    product.c = TensorRef(scratch_.of<float>(args.dx.elements()), DType::kF32, args.dx.shape);
    gemm_.multiply(product);
  }
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    cuda::with_activation(args.activation, [&](auto activation) {
      constexpr Activation kActivation = decltype(activation)::value;
      if (fused) return cuda::activate_view<T, kActivation>(stream_, args.activated, args.pre_activation);
      cuda::launch(stream_, cuda::shape_for(args.dx.elements(), cuda::kThreads),
                   cuda::multiply_by_slope<T, kActivation>, args.dx.as<T>(), product.c.as<float>(),
                   args.pre_activation.as<T>(), args.activated.as<T>(), args.dx.elements());
    });
  });
}

void CudaBackend::do_linear_weight_gradient(const LinearWeightGradient& args) {
  gemm_.multiply({.c = args.dweight, .a = args.dy, .b = args.x, .transpose_a = true, .accumulate = args.accumulate});
  if (!args.dbias) return;
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    const std::int64_t rows = args.dy.dim(0), columns = args.dy.dim(1);
    cuda::sum_rows(stream_, args.dy.as<T>(), rows, columns, scratch_.of<float>(cuda::column_sum_parts(rows) * columns),
                   args.dbias.as<float>(), args.accumulate);
  });
}

}  // namespace teratron

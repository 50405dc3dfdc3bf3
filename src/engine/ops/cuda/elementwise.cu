// Sums, activations, dropout and the residual connection: one pass over memory each.
#include <algorithm>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/dropout.h"
#include "ops/cuda/linear/activation.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMostSamples = 65535;  // blocks of a grid along y

// to += from. The elements after the last whole chunk are the last thread's.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) add_chunks(T* to, const T* from, std::int64_t count) {
  const std::int64_t chunks = count / kCount;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i <= chunks;
       i += std::int64_t{gridDim.x} * kThreads) {
    if (i == chunks) {
      for (std::int64_t e = i * kCount; e < count; ++e) to[e] = narrowed<T>(widened(to[e]) + widened(from[e]));
      return;
    }
    const auto a = load_chunk<kCount>(to + i * kCount), b = load_chunk<kCount>(from + i * kCount);
    Wide<T> sum[kCount];
    for (int e = 0; e < kCount; ++e) sum[e] = a[e] + b[e];
    store_chunk<kCount>(to + i * kCount, sum);
  }
}

// to = keep * to + scale * from; with keep 0, `to` is not read.
template <class To, class From>
__global__ void __launch_bounds__(kThreads)
    scale_add_elements(To* to, double keep, const From* from, double scale, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const double added = scale * static_cast<double>(widened(from[i]));
    to[i] = narrowed<To>(keep == 0 ? added : keep * static_cast<double>(widened(to[i])) + added);
  }
}

// y = activation(x) where dy is null, else y = dy * activation'(x).
template <class T, Activation kActivation>
__global__ void __launch_bounds__(kThreads) activate_elements(T* y, const T* dy, const T* x, std::int64_t count) {
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * kThreads) {
    const ValueAndSlope at = activate<kActivation>(static_cast<float>(widened(x[i])));
    y[i] = narrowed<T>(dy == nullptr ? at.value : static_cast<float>(widened(dy[i])) * at.slope);
  }
}

void activate_views(cudaStream_t stream, Activation activation, const TensorRef& y, const TensorRef& dy,
                    const TensorRef& x) {
  choose_by_storage(x.dtype, [&]<class T>(ElementType<T>) {
    const auto run = [&](auto kernel) {
      launch(stream, shape_for(x.elements(), kThreads), kernel, y.as<T>(), dy ? dy.as<T>() : nullptr, x.as<T>(),
             x.elements());
    };
    if (activation == Activation::kGeluTanh) return run(activate_elements<T, Activation::kGeluTanh>);
    if (activation == Activation::kGeluErf) return run(activate_elements<T, Activation::kGeluErf>);
    if (activation == Activation::kSilu) return run(activate_elements<T, Activation::kSilu>);
    if (activation == Activation::kRelu) return run(activate_elements<T, Activation::kRelu>);
    run(activate_elements<T, Activation::kTanh>);
  });
}

// sum = residual + dropout(branch), or dropout(branch) without a residual, of `samples` samples of sample_size elements
// each. Any two of the views may be one.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) add_branch(T* sum, const T* residual, const T* branch, std::int64_t samples,
                                                       std::int64_t sample_size, ActivationMask activations) {
  for (std::int64_t b = blockIdx.y; b < samples; b += gridDim.y) {
    for (std::int64_t i = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount; i < sample_size;
         i += std::int64_t{gridDim.x} * kThreads * kCount) {
      const std::int64_t index = b * sample_size + i;
      const auto from = load_chunk<kCount>(branch + index),
                 to = load_chunk_if<kCount>(residual != nullptr, residual + index);
      float factors[kCount], values[kCount];
      for (int e = 0; e < kCount; ++e) factors[e] = 1;
      if (activations.mask.active()) activations.mask.factors(activations.row(b, 0) + i, factors);
      for (int e = 0; e < kCount; ++e) values[e] = to[e] + factors[e] * from[e];
      store_chunk<kCount>(sum + index, values);
    }
  }
}

void add_branch_views(cudaStream_t stream, const TensorRef& sum, const TensorRef& residual, const TensorRef& branch,
                      const Dropout& dropout) {
  choose_by_storage(sum.dtype, [&]<class T>(ElementType<T>) {
    const std::int64_t samples = sum.dim(0), sample_size = sum.dim(1) * sum.dim(2), hidden = sum.dim(2);
    const T* const given = residual ? residual.as<T>() : nullptr;
    const bool vectors = takes_vectors(sum.as<T>(), hidden) && takes_vectors(given) && takes_vectors(branch.as<T>());
    choose_chunk<T>(vectors, [&](auto count) {
      LaunchShape shape = shape_for(sample_size / count, kThreads);
      shape.grid.y = static_cast<unsigned>(std::min(samples, kMostSamples));
      launch(stream, shape, add_branch<T, count>, sum.as<T>(), given, branch.as<T>(), samples, sample_size,
             ActivationMask(dropout, hidden));
    });
  });
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_add(const TensorRef& to, const TensorRef& from) {
  visit_floating(to.dtype, [&]<class T>(ElementType<T>) {
    cuda::choose_chunk<T>(cuda::takes_vectors(to.as<T>()) && cuda::takes_vectors(from.as<T>()), [&](auto count) {
      cuda::launch(stream_, cuda::shape_for(to.elements() / count + 1, cuda::kThreads), cuda::add_chunks<T, count>,
                   to.as<T>(), from.as<T>(), to.elements());
    });
  });
}

void CudaBackend::do_scale_add(const TensorRef& to, double keep, const TensorRef& from, double scale) {
  visit_floating(to.dtype, [&]<class To>(ElementType<To>) {
    visit_floating(from.dtype, [&]<class From>(ElementType<From>) {
      cuda::launch(stream_, cuda::shape_for(to.elements(), cuda::kThreads), cuda::scale_add_elements<To, From>,
                   to.as<To>(), keep, from.as<From>(), scale, to.elements());
    });
  });
}

void CudaBackend::do_activation_forward(const ActivationForward& args) {
  cuda::activate_views(stream_, args.activation, args.y, {}, args.x);
}

void CudaBackend::do_activation_backward(const ActivationBackward& args) {
  cuda::activate_views(stream_, args.activation, args.dx, args.dy, args.x);
}

void CudaBackend::do_residual_add(const ResidualAdd& args) {
  cuda::add_branch_views(stream_, args.sum, args.residual, args.branch, args.dropout);
}

void CudaBackend::do_dropout_backward(const DropoutBackward& args) {
  const auto& [dbranch, dsum, dropout] = args;
  if (dropout.active()) return cuda::add_branch_views(stream_, dbranch, {}, dsum, dropout);
  if (dbranch.data != dsum.data) do_copy(dbranch, dsum);
}

}  // namespace teratron

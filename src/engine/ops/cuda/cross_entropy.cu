// Softmax cross-entropy over the columns held here (struct CrossEntropyPartials): a block takes a row of logits, which
// is read once for the statistics, and read and written once for the gradient.
#include <limits>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/reduce.h"
#include "ops/storage.h"
#include "ops/valid_columns.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256;
constexpr float kLog2E = 1.4426950408889634F;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// e^(value - shift). The difference comes first: beside a large shift, one multiply-add would lose the last digits.
__device__ inline float exp_of_difference(float value, float shift) { return fast_exp2((value - shift) * kLog2E); }

// The maximum of the logits seen so far, and the sum of their exponentials relative to it.
struct Softmax {
  float max = -kInfinity, sum = 0;

  __device__ void shift_to(float new_max) {
    if (max != -kInfinity) sum *= exp_of_difference(max, new_max);
    max = new_max;
  }
};

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    softmax_partials(const T* logits, std::int64_t columns, ValidColumns valid_columns, const std::int32_t* targets,
                     std::int64_t vocab_begin, float* max, float* sum, float* target_logit) {
  const std::int64_t row = blockIdx.x, valid = valid_columns.of(row), chunks = valid / kCount;
  const T* const from = logits + row * columns;
  Softmax own;
  for_each_chunk<kCount>(from, threadIdx.x, chunks, kThreads, [&](std::int64_t, const Chunk<T, kCount>& chunk) {
    float largest = chunk[0];
    for (int e = 1; e < kCount; ++e) largest = fmaxf(largest, chunk[e]);
    if (largest > own.max) own.shift_to(largest);
    for (int e = 0; e < kCount; ++e) own.sum += exp_of_difference(chunk[e], own.max);
  });
  if (threadIdx.x < valid - chunks * kCount) {  // after the last whole chunk
    const float value = widened(from[chunks * kCount + threadIdx.x]);
    own.shift_to(fmaxf(own.max, value));
    own.sum += exp_of_difference(value, own.max);
  }
  const float row_max = reduce<kThreads, Larger>(own.max);
  own.shift_to(row_max);
  const float row_sum = reduce<kThreads, Plus>(own.sum);
  if (threadIdx.x > 0) return;
  const std::int64_t target = targets[row] - vocab_begin;
  max[row] = row_max;
  sum[row] = row_sum;
  target_logit[row] = target >= 0 && target < valid ? widened(from[target]) : 0;
}

// Factors that turn a logit of one row into its gradient.
struct RowGradient {
  float max, factor, weight;
  std::int64_t target;

  __device__ float operator()(std::int64_t column, float logit) const {
    return factor * exp_of_difference(logit, max) - (column == target ? weight : 0);
  }
};

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads)
    softmax_gradient(T* logits, std::int64_t columns, ValidColumns valid_columns, const std::int32_t* targets,
                     std::int64_t vocab_begin, const float* max, const float* sum, const float* weight) {
  const std::int64_t row = blockIdx.x, valid = valid_columns.of(row), chunks = valid / kCount;
  T* const at = logits + row * columns;
  const RowGradient gradient{
      .max = max[row], .factor = weight[row] / sum[row], .weight = weight[row], .target = targets[row] - vocab_begin};
  for_each_chunk<kCount>(at, threadIdx.x, chunks, kThreads, [&](std::int64_t i, const Chunk<T, kCount>& chunk) {
    float values[kCount];
    for (int e = 0; e < kCount; ++e) values[e] = gradient(i * kCount + e, chunk[e]);
    store_chunk<kCount>(at + i * kCount, values);
  });
  for (std::int64_t c = chunks * kCount + threadIdx.x; c < columns; c += kThreads) {
    at[c] = narrowed<T>(c < valid ? gradient(c, widened(at[c])) : 0.0F);
  }
}

__global__ void __launch_bounds__(kThreads)
    rescale_sums(float* sum, const float* own_max, const float* max, std::int64_t count) {
  for (std::int64_t t = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; t < count;
       t += std::int64_t{gridDim.x} * kThreads) {
    sum[t] = fabsf(own_max[t]) == kInfinity ? 0 : sum[t] * expf(own_max[t] - max[t]);
  }
}

__global__ void __launch_bounds__(kThreads)
    make_losses(float* loss, const float* max, const float* sum, const float* target_logit, std::int64_t count) {
  for (std::int64_t t = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; t < count;
       t += std::int64_t{gridDim.x} * kThreads) {
    loss[t] = logf(sum[t]) + max[t] - target_logit[t];
  }
}

// By one block, so that the order of the sum depends on the count alone. With `counts`, the weights of values below
// `below` are added up.
__global__ void __launch_bounds__(kThreads) add_weighted(double* total, const float* value, const float* weight,
                                                         std::int64_t count, bool counts, double below) {
  double sum = 0;
  for (std::int64_t t = threadIdx.x; t < count; t += kThreads) {
    const double of_row = static_cast<double>(value[t]);
    const double factor = counts ? (of_row < below ? 1.0 : 0.0) : of_row;
    sum += factor * static_cast<double>(weight[t]);
  }
  sum = reduce<kThreads, Plus>(sum);
  if (threadIdx.x == 0) *total += sum;
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_cross_entropy_partials(const CrossEntropyPartials& args) {
  const std::int64_t rows = args.logits.dim(0), columns = args.logits.dim(1);
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    cuda::choose_chunk<T>(cuda::takes_vectors(args.logits.as<T>(), columns), [&](auto count) {
      cuda::launch(stream_, cuda::shape_for(rows * cuda::kThreads, cuda::kThreads), cuda::softmax_partials<T, count>,
                   args.logits.as<T>(), columns, ValidColumns(args), args.targets.as<std::int32_t>(), args.vocab_begin,
                   args.max.as<float>(), args.sum.as<float>(), args.target_logit.as<float>());
    });
  });
}

void CudaBackend::do_cross_entropy_rescale(const CrossEntropyRescale& args) {
  cuda::launch(stream_, cuda::shape_for(args.sum.elements(), cuda::kThreads), cuda::rescale_sums, args.sum.as<float>(),
               args.own_max.as<float>(), args.max.as<float>(), args.sum.elements());
}

void CudaBackend::do_cross_entropy_loss(const CrossEntropyLoss& args) {
  cuda::launch(stream_, cuda::shape_for(args.loss.elements(), cuda::kThreads), cuda::make_losses, args.loss.as<float>(),
               args.max.as<float>(), args.sum.as<float>(), args.target_logit.as<float>(), args.loss.elements());
}

void CudaBackend::do_weighted_sum(const WeightedSum& args) {
  cuda::launch(stream_, {.grid = dim3(1), .block = dim3(cuda::kThreads)}, cuda::add_weighted, args.total.as<double>(),
               args.value.as<float>(), args.weight.as<float>(), args.value.elements(), args.count_below.has_value(),
               args.count_below.value_or(0));
}

void CudaBackend::do_cross_entropy_backward(const CrossEntropyBackward& args) {
  const std::int64_t rows = args.logits.dim(0), columns = args.logits.dim(1);
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    cuda::choose_chunk<T>(cuda::takes_vectors(args.logits.as<T>(), columns), [&](auto count) {
      cuda::launch(stream_, cuda::shape_for(rows * cuda::kThreads, cuda::kThreads), cuda::softmax_gradient<T, count>,
                   args.logits.as<T>(), columns, ValidColumns(args), args.targets.as<std::int32_t>(), args.vocab_begin,
                   args.max.as<float>(), args.sum.as<float>(), args.weight.as<float>());
    });
  });
}

}  // namespace teratron

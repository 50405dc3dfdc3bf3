// The AdamW update (Loshchilov and Hutter, arXiv 1711.05101, algorithm 2) in one pass: 28 bytes moved per parameter,
// with masters in halves too (20 where the moments are bf16), and 2 for rounded weights beside their masters. And the
// sum of squares that the gradient norm is made of.
#include <algorithm>
#include <bit>
#include <numeric>
#include <type_traits>
#include <vector>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/reduce.h"
#include "ops/cuda/scratch_sizes.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 256;

struct Update {
  float scale, beta1, rest1, beta2, rest2, inverse2, rate, epsilon;

  explicit Update(const AdamW& args)
      : scale(static_cast<float>(args.gradient_scale)),
        beta1(static_cast<float>(args.beta1)),
        rest1(static_cast<float>(1 - args.beta1)),
        beta2(static_cast<float>(args.beta2)),
        rest2(static_cast<float>(1 - args.beta2)),
        inverse2(static_cast<float>(1 / args.correction2)),
        rate(static_cast<float>(args.learning_rate / args.correction1)),
        epsilon(static_cast<float>(args.epsilon)) {}
};

// The random words of the elements of a parameter, one each, drawn in blocks of four.
class RoundingWords {
 public:
  __device__ RoundingWords(const RandomStream& stream, const ElementIndices& indices)
      : stream_(stream), indices_(indices) {}

  __device__ std::uint32_t of(std::int64_t element) {
    const std::int64_t index = indices_.of(element);
    if (index / 4 != block_) words_ = stream_.bits(static_cast<std::uint64_t>(block_ = index / 4));
    // Chosen by comparisons: a number that is computed would put the words into local memory.
    const auto [first, second, third, fourth] = words_;
    const std::int64_t word = index % 4;
    return word < 2 ? (word == 0 ? first : second) : (word == 2 ? third : fourth);
  }

 private:
  const RandomStream& stream_;
  const ElementIndices& indices_;
  std::int64_t block_ = -1;
  PhiloxCounter words_ = {};
};

// The weights that AdamW updates. T: of `working`, which the layers read. If Bf16, it has the nearest halves of the
// masters, whose remainders are `value` (split_float); else it is a copy of `value`, and may be absent.
template <class T>
struct Weights {
  using Value = std::conditional_t<std::is_same_v<T, Bf16>, std::uint16_t, float>;
  Value* value;
  T* working;

  bool takes_vectors() const { return cuda::takes_vectors(value) && cuda::takes_vectors(working); }

  template <int kCount>
  __device__ void load(std::int64_t first, float (&weights)[kCount]) const {
    const auto values = load_chunk<kCount>(value + first);
    if constexpr (std::is_same_v<T, Bf16>) {
      const auto nearest = load_chunk<kCount>(working + first);
      for (int e = 0; e < kCount; ++e) {
        weights[e] = std::bit_cast<float>(joined_bits({.nearest = nearest.stored(e), .remainder = values.stored(e)}));
      }
    } else {
      for (int e = 0; e < kCount; ++e) weights[e] = values[e];
    }
  }

  template <int kCount>
  __device__ void store(std::int64_t first, const float (&updated)[kCount]) const {
    if constexpr (std::is_same_v<T, Bf16>) {
      Chunk<T, kCount> nearest;
      Chunk<Value, kCount> remainders;
      for (int e = 0; e < kCount; ++e) {
        const SplitFloat halves = split_float(std::bit_cast<std::uint32_t>(updated[e]));
        nearest.set(e, halves.nearest);
        remainders.set(e, halves.remainder);
      }
      store_chunk<kCount>(working + first, nearest);
      store_chunk<kCount>(value + first, remainders);
    } else {
      store_chunk<kCount>(value + first, updated);
      if (working != nullptr) store_chunk<kCount>(working + first, updated);
    }
  }
};

// M: of the moments.
template <class T, class M>
struct Parameter {
  Weights<T> weights;
  const float* gradient;
  M *moment1, *moment2;
  std::int64_t count;
  float keep;  // what its decay leaves of it
  RandomStream rounding;
  ElementIndices indices;

  // kCount of them from number `first` on.
  template <int kCount>
  __device__ void change(const Update& update, std::int64_t first) const {
    const auto old_g = load_chunk<kCount>(gradient + first);
    const auto old_m = load_chunk<kCount>(moment1 + first), old_v = load_chunk<kCount>(moment2 + first);
    float p[kCount], m[kCount], v[kCount];
    weights.template load<kCount>(first, p);
    for (int e = 0; e < kCount; ++e) {
      const float g = update.scale * old_g[e];
      m[e] = update.beta1 * old_m[e] + update.rest1 * g;
      v[e] = update.beta2 * old_v[e] + update.rest2 * g * g;
      p[e] = keep * p[e] - update.rate * m[e] / (sqrtf(v[e] * update.inverse2) + update.epsilon);
    }
    weights.template store<kCount>(first, p);
    if constexpr (std::is_same_v<M, float>) {
      store_chunk<kCount>(moment1 + first, m);
      store_chunk<kCount>(moment2 + first, v);
    } else {
      RoundingWords words(rounding, indices);
      Chunk<M, kCount> short_m, short_v;
      for (int e = 0; e < kCount; ++e) {
        const std::uint32_t random = words.of(first + e);
        short_m.set(e, bf16_by_chance(std::bit_cast<std::uint32_t>(m[e]), random));
        short_v.set(e, bf16_by_chance(std::bit_cast<std::uint32_t>(v[e]), random >> 16));
      }
      store_chunk<kCount>(moment1 + first, short_m);
      store_chunk<kCount>(moment2 + first, short_v);
    }
  }
};

// Parameters of one launch, each with its own blocks. The struct is a kernel argument, which may have 4 KiB.
constexpr int kMostParameters = 32;
template <class T, class M>
struct Parameters {
  Parameter<T, M> all[kMostParameters];
  unsigned first_block[kMostParameters + 1];
  int count = 0;

  void add(const Parameter<T, M>& parameter, std::int64_t blocks) {
    if (count == 0) first_block[0] = 0;
    all[count] = parameter;
    first_block[count + 1] = first_block[count] + static_cast<unsigned>(blocks);
    ++count;
  }
};

// The last thread takes the elements after the last whole chunk.
template <class T, class M, int kCount>
__global__ void __launch_bounds__(kThreads) update_parameters(Update update, Parameters<T, M> parameters) {
  int which = 0;
  while (blockIdx.x >= parameters.first_block[which + 1]) ++which;
  const Parameter<T, M> own = parameters.all[which];
  const unsigned block = blockIdx.x - parameters.first_block[which];
  const unsigned blocks = parameters.first_block[which + 1] - parameters.first_block[which];
  const std::int64_t chunks = own.count / kCount;
  for (std::int64_t i = std::int64_t{block} * kThreads + threadIdx.x; i <= chunks;
       i += std::int64_t{blocks} * kThreads) {
    if (i < chunks) {
      own.template change<kCount>(update, i * kCount);
    } else {
      for (std::int64_t e = i * kCount; e < own.count; ++e) own.template change<1>(update, e);
    }
  }
}

// Launches what takes vectors and what does not apart, as many parameters at a time as an argument has room for.
template <class T, class M, int kCount>
class Updates {
 public:
  Updates(cudaStream_t stream, const AdamW& args) : stream_(stream), update_(args) {}

  void add(const Parameter<T, M>& parameter) {
    constexpr std::int64_t kMostBlocksEach = 1 << 20;  // of which a launch may have 2^31 - 1 in all
    if (waiting_.count == kMostParameters) launch_waiting();
    waiting_.add(parameter, std::min(parameter.count / kCount / kThreads + 1, kMostBlocksEach));
  }
  void launch_waiting() {
    if (waiting_.count == 0) return;
    launch(stream_, {.grid = dim3(waiting_.first_block[waiting_.count]), .block = dim3(kThreads)},
           update_parameters<T, M, kCount>, update_, waiting_);
    waiting_.count = 0;
  }

 private:
  cudaStream_t stream_;
  Update update_;
  Parameters<T, M> waiting_;
};

// Views of one launch, each with its own blocks: a kernel argument, which may have 4 KiB.
constexpr int kMostViews = 128;
template <class T>
struct SquaredViews {
  const T* values[kMostViews];
  std::int64_t counts[kMostViews];  // elements
  unsigned first_block[kMostViews + 1];
};

// A thread's squares are added in T's accumulator, those of a block in double.
template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) sum_squares(SquaredViews<T> views, double* of_blocks) {
  int which = 0;
  while (blockIdx.x >= views.first_block[which + 1]) ++which;
  const unsigned block = blockIdx.x - views.first_block[which];
  const unsigned blocks = views.first_block[which + 1] - views.first_block[which];
  const T* const values = views.values[which];
  const std::int64_t count = views.counts[which];
  const std::int64_t chunks = count / kCount, step = std::int64_t{blocks} * kThreads;
  const std::int64_t own = std::int64_t{block} * kThreads + threadIdx.x;
  Wide<T> sums[kCount] = {};
  for_each_chunk<kCount>(values, own, chunks, step, [&](std::int64_t, const Chunk<T, kCount>& chunk) {
    for (int e = 0; e < kCount; ++e) sums[e] += chunk[e] * chunk[e];
  });
  if (own < count - chunks * kCount) {  // after the last chunk
    const Wide<T> value = widened(values[chunks * kCount + own]);
    sums[0] += value * value;
  }
  double sum = 0;
  for (int e = 0; e < kCount; ++e) sum += sums[e];
  sum = reduce<kThreads, Plus>(sum);
  if (threadIdx.x == 0) of_blocks[blockIdx.x] = sum;
}

// A block adds up those of a view.
template <class T>
__global__ void __launch_bounds__(kThreads)
    add_squares(SquaredViews<T> views, const double* of_blocks, double* of_views) {
  double sum = 0;
  const unsigned end = views.first_block[blockIdx.x + 1];
  for (unsigned block = views.first_block[blockIdx.x] + threadIdx.x; block < end; block += kThreads) {
    sum += of_blocks[block];
  }
  sum = reduce<kThreads, Plus>(sum);
  if (threadIdx.x == 0) of_views[blockIdx.x] = sum;
}

bool has_aligned_values(const TensorRef& view) { return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0; }

unsigned square_blocks_of(const TensorRef& view) {
  const std::int64_t chunk = has_aligned_values(view) ? std::max<std::int64_t>(1, 16 / size_of(view.dtype)) : 1;
  const LaunchShape shape = shape_for(view.elements() / (chunk * kChunksInFlight) + 1, kThreads);
  return std::min(shape.grid.x, static_cast<unsigned>(kSquareBlocks));
}

// Number of the first views that one launch takes: of one type, and all aligned or none.
std::size_t alike_at_front(std::span<const TensorRef> views) {
  const auto differs = [&first = views.front()](const TensorRef& view) {
    return view.dtype != first.dtype || has_aligned_values(view) != has_aligned_values(first);
  };
  const auto alike = static_cast<std::size_t>(std::ranges::find_if(views, differs) - views.begin());
  return std::min<std::size_t>(alike, kMostViews);
}

// The blocks of all views write their sums side by side, and so do the views.
void sum_all_squares(cudaStream_t stream, std::span<const TensorRef> views, double* of_views, double* of_blocks) {
  while (!views.empty()) {
    const std::span<const TensorRef> alike = views.first(alike_at_front(views));
    visit_floating(alike.front().dtype, [&]<class T>(ElementType<T>) {
      SquaredViews<T> together = {};
      for (std::size_t i = 0; i < alike.size(); ++i) {
        together.values[i] = alike[i].template as<T>();
        together.counts[i] = alike[i].elements();
        together.first_block[i + 1] = together.first_block[i] + square_blocks_of(alike[i]);
      }
      const unsigned blocks = together.first_block[alike.size()];
      choose_chunk<T>(has_aligned_values(alike.front()), [&](auto chunk) {
        launch(stream, {.grid = dim3(blocks), .block = dim3(kThreads)}, sum_squares<T, chunk>, together, of_blocks);
      });
      launch(stream, {.grid = dim3(static_cast<unsigned>(alike.size())), .block = dim3(kThreads)}, add_squares<T>,
             together, of_blocks, of_views);
      of_blocks += blocks;
    });
    of_views += alike.size();
    views = views.subspan(alike.size());
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_adamw(const AdamW& args) {
  const auto update = [&]<class T, class M>(ElementType<T>, ElementType<M>) {
    cuda::Updates<T, M, cuda::Vector<float>::kSize> vectors(stream_, args);
    cuda::Updates<T, M, 1> singles(stream_, args);
    for (const AdamWParameter& of : args.parameters) {
      const cuda::Weights<T> weights = {.value = of.value.as<typename cuda::Weights<T>::Value>(),
                                        .working = of.working ? of.working.as<T>() : nullptr};
      const cuda::Parameter<T, M> parameter = {.weights = weights,
                                               .gradient = of.gradient.as<float>(),
                                               .moment1 = of.moment1.as<M>(),
                                               .moment2 = of.moment2.as<M>(),
                                               .count = of.value.elements(),
                                               .keep = static_cast<float>(1 - args.learning_rate * of.weight_decay),
                                               .rounding = of.rounding,
                                               .indices = of.indices};
      const bool takes_vectors = weights.takes_vectors() && cuda::takes_vectors(parameter.gradient) &&
                                 cuda::takes_vectors(parameter.moment1) && cuda::takes_vectors(parameter.moment2);
      if (takes_vectors) {
        vectors.add(parameter);
      } else {
        singles.add(parameter);
      }
    }
    vectors.launch_waiting();
    singles.launch_waiting();
  };
  const AdamWParameter& first = args.parameters.front();
  choose_by_storage(first.working ? first.working.dtype : DType::kF32, [&]<class T>(ElementType<T> working) {
    if (first.moment1.dtype == DType::kBF16) {
      update(working, ElementType<Bf16>());
    } else {
      update(working, ElementType<float>());
    }
  });
}

double CudaBackend::do_sum_of_squares(std::span<const TensorRef> views) {
  std::int64_t blocks = 0;
  for (const TensorRef& view : views) blocks += cuda::square_blocks_of(view);
  const auto count = static_cast<std::int64_t>(views.size());
  const TensorRef sums(scratch_.of<double>(count + blocks), DType::kF64, {count});
  cuda::sum_all_squares(stream_, views, sums.as<double>(), sums.as<double>() + count);
  std::vector<double> of_views(views.size());
  do_download(of_views.data(), sums);
  return std::accumulate(of_views.begin(), of_views.end(), 0.0);
}

}  // namespace teratron

// Token and position embeddings, forward: a block makes a row, or several of the same position.
#include <algorithm>

#include "ops/cuda/cuda_backend.h"
#include "ops/cuda/kernels/chunks.h"
#include "ops/cuda/kernels/dropout.h"
#include "ops/storage.h"

namespace teratron {
namespace cuda {
namespace {

constexpr int kThreads = 128;
constexpr std::int64_t kMostSamples = 65535;  // blocks of a grid along y

template <class T>
struct Embedding {
  T* y;
  const std::int32_t *ids, *position_ids;  // position_ids: may be absent
  const T *tokens, *positions;             // positions: from that of the first token on, or of id 0; may be absent
  std::int64_t batch, length, hidden, vocab_begin, vocabulary;
  ActivationMask activations;
};

template <class T, int kCount>
__global__ void __launch_bounds__(kThreads) embed(Embedding<T> all) {
  const std::int64_t t = blockIdx.x;
  for (std::int64_t b = blockIdx.y; b < all.batch; b += gridDim.y) {
    const std::int64_t row = b * all.length + t, entry = all.ids[row] - all.vocab_begin;
    const bool is_here = entry >= 0 && entry < all.vocabulary;
    const std::int64_t position_id = all.position_ids == nullptr ? t : all.position_ids[row];
    for (std::int64_t j = std::int64_t{threadIdx.x} * kCount; j < all.hidden; j += kThreads * kCount) {
      const auto token = load_chunk_if<kCount>(is_here, all.tokens + entry * all.hidden + j);
      const auto position =
          load_chunk_if<kCount>(all.positions != nullptr, all.positions + position_id * all.hidden + j);
      float factors[kCount], values[kCount];
      for (int e = 0; e < kCount; ++e) factors[e] = 1;
      if (all.activations.mask.active()) all.activations.mask.factors(all.activations.row(b, t) + j, factors);
      for (int e = 0; e < kCount; ++e) values[e] = factors[e] * (token[e] + position[e]);
      store_chunk<kCount>(all.y + row * all.hidden + j, values);
    }
  }
}

}  // namespace
}  // namespace cuda

void CudaBackend::do_embedding_forward(const EmbeddingForward& args) {
  choose_by_storage(compute_dtype_, [&]<class T>(ElementType<T>) {
    const std::int64_t batch = args.y.dim(0), length = args.y.dim(1), hidden = args.y.dim(2);
    const std::int64_t first_position = args.position_ids ? 0 : args.first_position;
    const cuda::Embedding<T> all = {
        .y = args.y.as<T>(),
        .ids = args.ids.as<std::int32_t>(),
        .position_ids = args.position_ids ? args.position_ids.as<std::int32_t>() : nullptr,
        .tokens = args.tokens.as<T>(),
        .positions = args.positions ? args.positions.as<T>() + first_position * hidden : nullptr,
        .batch = batch,
        .length = length,
        .hidden = hidden,
        .vocab_begin = args.vocab_begin,
        .vocabulary = args.tokens.dim(0),
        .activations = cuda::ActivationMask(args.dropout, hidden)};
    const bool vectors =
        cuda::takes_vectors(all.y, hidden) && cuda::takes_vectors(all.tokens) && cuda::takes_vectors(all.positions);
    cuda::choose_chunk<T>(vectors, [&](auto count) {
      cuda::LaunchShape shape = cuda::shape_for(length * cuda::kThreads, cuda::kThreads);
      shape.grid.y = static_cast<unsigned>(std::min(batch, cuda::kMostSamples));
      cuda::launch(stream_, shape, cuda::embed<T, count>, all);
    });
  });
}

}  // namespace teratron

// Token and position embeddings. Backward sorts the rows by token, so that each entry of the table is summed by one
// thread, in the order of the rows: no atomics, and the same bits every time.
#include "ops/cpu/simd/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/embedding.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <span>
#include <vector>

#include "base/block_size.h"
#include "base/host/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/simd/dropout-inl.h"
#include "ops/cpu/simd/simd-inl.h"
#include "ops/storage.h"
#include "tensor/weight_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

// The row of the position table that a row of the batch uses.
template <class Arguments>
std::int64_t position_of(const Arguments& args, std::int64_t row) {
  if (args.position_ids) return args.position_ids.template as<std::int32_t>()[row];
  return args.first_position + row % args.ids.dim(1);
}

// y = dropout(term(0), term(1), ..), the first of them element `first` of the whole tensor.
template <class T, class Term>
void write_row(T* y, std::int64_t hidden, const Dropout& dropout, DropoutMask& mask, std::int64_t first,
               const Term& term) {
  if (!dropout.active()) {
    for_each_vector(hidden, [&](std::int64_t i, auto access) HWY_ATTR { access.store(term(i, access), y + i); });
    return;
  }
  for (std::int64_t begin = 0; begin < hidden; begin += DropoutMask::kRun) {
    const std::int64_t length = std::min(hidden - begin, DropoutMask::kRun);
    mask.generate(first + begin, length);
    for_each_vector(length, [&](std::int64_t i, auto access)
                                HWY_ATTR { access.store(mask.apply(term(begin + i, access), i), y + begin + i); });
  }
}

// A row of a table of T. load() reads a vector of it.
template <class T>
struct PlainRow {
  const T* values;
  template <class Access>
  HWY_INLINE FloatVector load(std::int64_t at, Access access) const {
    return access.load(values + at);
  }
};
template <class T>
PlainRow<T> row_of(const TensorRef& table, std::int64_t row, ElementType<T> /*element*/) {
  return {table.as<T>() + row * table.dim(1)};
}

// A row of a table in tiles.
template <class Tile>
struct TiledRow {
  const Tile* tiles;
  std::int64_t row;
  template <class Access>
  HWY_INLINE FloatVector load(std::int64_t at, Access access) const {
    HWY_ALIGN float values[kFloatLanes];
    for (std::int64_t i = 0; i < kFloatLanes; ++i) {  // which lie in one tile
      values[i] = value_in(tiles[at / kTileColumns], row, at % kTileColumns + i);
    }
    return access.load(values);
  }
};
TiledRow<Q8Tile> row_of(const TensorRef& table, std::int64_t row, ElementType<Q8Tile> /*element*/) {
  return {table.as<Q8Tile>() + row / kTileRows * table.dim(1), row % kTileRows};
}
TiledRow<Q4Tile> row_of(const TensorRef& table, std::int64_t row, ElementType<Q4Tile> /*element*/) {
  return {table.as<Q4Tile>() + row / kTileRows * table.dim(1), row % kTileRows};
}

// Element: type of the token table.
template <class T, class Element = T>
void embed_rows(const EmbeddingForward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t entries = args.tokens.dim(0) * (is_tiles(args.tokens.dtype) ? kTileRows : 1);
  const std::int64_t tokens = args.y.dim(1), hidden = args.y.dim(2);
  DropoutMask mask(args.dropout);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t t = row % tokens, first = first_element(args.dropout, row / tokens, t, hidden);
    T* const y = args.y.as<T>() + row * hidden;
    const std::int64_t entry = args.ids.as<std::int32_t>()[row] - args.vocab_begin;
    const bool is_here = entry >= 0 && entry < entries;
    const auto token = row_of(args.tokens, is_here ? entry : 0, ElementType<Element>());
    const T* const position = args.positions ? args.positions.as<T>() + position_of(args, row) * hidden : nullptr;
    if (is_here && position != nullptr) {
      write_row(y, hidden, args.dropout, mask, first, [&](std::int64_t i, auto access) HWY_ATTR {
        return hn::Add(access.load(position + i), token.load(i, access));
      });
    } else if (is_here) {
      write_row(y, hidden, args.dropout, mask, first,
                [&](std::int64_t i, auto access) HWY_ATTR { return token.load(i, access); });
    } else if (position != nullptr) {
      write_row(y, hidden, args.dropout, mask, first,
                [&](std::int64_t i, auto access) HWY_ATTR { return access.load(position + i); });
    } else {
      std::fill(y, y + hidden, T(0.0F));
    }
  }
}

// total += dropout's gradient of row `row` of dy.
template <class T>
void add_gradient_row(const EmbeddingBackward& args, std::int64_t row, DropoutMask& mask, float* total) {
  const std::int64_t tokens = args.dy.dim(1), hidden = args.dy.dim(2);
  const T* const dy = args.dy.as<T>() + row * hidden;
  if (args.dropout.active()) {
    const std::int64_t first = first_element(args.dropout, row / tokens, row % tokens, hidden);
    dropout_add(total, total, dy, mask, first, hidden);
  } else {
    plain_add(total, total, dy, hidden);
  }
}

// Adds row p of every sample to the gradient of position p, for positions [begin, end) of this call.
template <class T>
void add_position_gradients(const EmbeddingBackward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t batch = args.dy.dim(0), tokens = args.dy.dim(1), hidden = args.dy.dim(2);
  DropoutMask mask(args.dropout);
  for (std::int64_t t = begin; t < end; ++t) {
    float* const total = args.dpositions.as<float>() + (args.first_position + t) * hidden;
    for (std::int64_t b = 0; b < batch; ++b) add_gradient_row<T>(args, b * tokens + t, mask, total);
  }
}

// Adds the gradients of all uses of one entry of a table.
template <class T>
void add_entry_gradient(const EmbeddingBackward& args, const TensorRef& table, std::span<const Use> uses) {
  DropoutMask mask(args.dropout);
  float* const total = table.as<float>() + uses.front().entry * args.dy.dim(2);
  for (const Use& use : uses) add_gradient_row<T>(args, use.row, mask, total);
}

using EmbedRows = void (*)(const EmbeddingForward&, std::int64_t, std::int64_t);

EmbedRows embed_kernel(DType dtype, DType tokens) {
  return choose_by_storage(dtype, [&]<class T>(ElementType<T>) -> EmbedRows {
    if (!is_tiles(tokens)) return &embed_rows<T>;
    return visit_tiles(tokens, []<class Tile>(Tile) -> EmbedRows { return &embed_rows<T, Tile>; });
  });
}

EmbeddingGradientKernels gradient_kernels(DType dtype) {
  return choose_by_storage(dtype, []<class T>(ElementType<T>) {
    return EmbeddingGradientKernels{&add_position_gradients<T>, &add_entry_gradient<T>};
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(embed_kernel);
HWY_EXPORT(gradient_kernels);

constexpr std::int64_t kRowGrain = block_size(16, 1);

// Uses of the table's entries, sorted by entry and then by row. Entry 0 has the id `begin`. The memory is kept from
// call to call.
std::span<const Use> sorted_uses(const TensorRef& table, const TensorRef& ids, std::int64_t begin) {
  thread_local std::vector<Use> uses;
  uses.clear();
  for (std::int64_t row = 0; row < ids.elements(); ++row) {
    const std::int64_t entry = ids.as<std::int32_t>()[row] - begin;
    if (entry >= 0 && entry < table.dim(0)) uses.push_back({entry, row});
  }
  std::sort(uses.begin(), uses.end());
  return uses;
}

// Adds the gradients of the uses to the table's gradient.
void add_entries(const EmbeddingGradientKernels& kernels, const EmbeddingBackward& args, const TensorRef& table,
                 const TensorRef& ids, std::int64_t begin) {
  const std::span<const Use> uses = sorted_uses(table, ids, begin);
  // A range handles the entries whose first use lies in it.
  parallel_for(std::ssize(uses), kRowGrain, [&](std::int64_t first, std::int64_t end) {
    const auto* const range_end = uses.data() + end;
    const Use* use = uses.data() + first;
    if (first > 0) use = std::upper_bound(use, range_end, use[-1], entry_less);
    while (use < range_end) {
      const Use* const next = std::upper_bound(use, uses.data() + uses.size(), *use, entry_less);
      kernels.add_entry(args, table, {use, next});
      use = next;
    }
  });
}

}  // namespace

void CpuBackend::do_embedding_forward(const EmbeddingForward& args) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(embed_kernel)(args.y.dtype, args.tokens.dtype);
  parallel_for(args.ids.elements(), kRowGrain, [&](std::int64_t begin, std::int64_t end) { kernel(args, begin, end); });
}

void CpuBackend::do_embedding_backward(const EmbeddingBackward& args) {
  const auto kernels = HWY_DYNAMIC_DISPATCH(gradient_kernels)(args.dy.dtype);
  if (args.dpositions) {
    if (!args.accumulate_positions) do_fill(args.dpositions, 0);
    if (args.position_ids) {
      add_entries(kernels, args, args.dpositions, args.position_ids, 0);
    } else {
      parallel_for(args.dy.dim(1), kRowGrain,
                   [&](std::int64_t begin, std::int64_t end) { kernels.add_positions(args, begin, end); });
    }
  }
  if (!args.dtokens) return;
  if (!args.accumulate_tokens) do_fill(args.dtokens, 0);
  add_entries(kernels, args, args.dtokens, args.ids, args.vocab_begin);
}

}  // namespace teratron
#endif  // HWY_ONCE

// Token and position embeddings. Backward sorts the rows by token, so that each entry of the table is summed by one
// thread, in the order of the rows: no atomics, and the same bits every time.
#include "ops/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu/embedding.cc"  // NOLINT: how Highway compiles this file per target
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/threads.h"
#include "hwy/highway.h"
#include "ops/cpu/cpu_backend.h"
#include "ops/cpu/dropout-inl.h"
#include "ops/cpu/elements.h"
#include "ops/cpu/embedding_use.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace teratron {
namespace HWY_NAMESPACE {
namespace {

void embed_rows(const EmbeddingForward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t tokens = args.y.dim(1), hidden = args.y.dim(2);
  DropoutMask mask(args.dropout);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t b = row / tokens, t = row % tokens;
    float* const y = args.y.as<float>() + row * hidden;
    const std::int64_t entry = args.ids.as<std::int32_t>()[row] - args.vocab_begin;
    const bool is_here = entry >= 0 && entry < args.tokens.dim(0);
    const float* const token = is_here ? args.tokens.as<float>() + entry * hidden : nullptr;
    const float* const position =
        args.positions ? args.positions.as<float>() + (args.first_position + t) * hidden : nullptr;
    if (token != nullptr && position != nullptr) {
      plain_add(y, position, token, hidden);
    } else if (token != nullptr || position != nullptr) {
      std::memcpy(y, token != nullptr ? token : position, static_cast<std::size_t>(hidden) * sizeof(float));
    } else {
      std::fill(y, y + hidden, 0.0F);
    }
    if (args.dropout.active()) {
      dropout_add(y, nullptr, y, mask, first_element(args.dropout, b, t, hidden), hidden);
    }
  }
}

// total += dropout's gradient of row `row` of dy.
void add_gradient_row(const EmbeddingBackward& args, std::int64_t row, DropoutMask& mask, float* total) {
  const std::int64_t tokens = args.dy.dim(1), hidden = args.dy.dim(2);
  const float* const dy = args.dy.as<float>() + row * hidden;
  if (args.dropout.active()) {
    const std::int64_t first = first_element(args.dropout, row / tokens, row % tokens, hidden);
    dropout_add(total, total, dy, mask, first, hidden);
  } else {
    plain_add(total, total, dy, hidden);
  }
}

// The same row of every sample is added to its position's gradient, for positions [begin, end) of this call's.
void add_position_gradients(const EmbeddingBackward& args, std::int64_t begin, std::int64_t end) {
  const std::int64_t batch = args.dy.dim(0), tokens = args.dy.dim(1), hidden = args.dy.dim(2);
  DropoutMask mask(args.dropout);
  for (std::int64_t t = begin; t < end; ++t) {
    float* const total = args.dpositions.as<float>() + (args.first_position + t) * hidden;
    for (std::int64_t b = 0; b < batch; ++b) add_gradient_row(args, b * tokens + t, mask, total);
  }
}

// All uses of one entry.
void add_entry_gradient(const EmbeddingBackward& args, std::span<const Use> uses) {
  DropoutMask mask(args.dropout);
  float* const total = args.dtokens.as<float>() + uses.front().entry * args.dy.dim(2);
  for (const Use& use : uses) add_gradient_row(args, use.row, mask, total);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace teratron
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace teratron {
namespace {

HWY_EXPORT(embed_rows);
HWY_EXPORT(add_position_gradients);
HWY_EXPORT(add_entry_gradient);

constexpr std::int64_t kRowGrain = 16;

// Every use of an entry held here, by entry and then by row. The memory is kept from call to call.
std::span<const Use> sorted_uses(const EmbeddingBackward& args) {
  thread_local std::vector<Use> uses;
  uses.clear();
  const auto* const ids = args.ids.as<std::int32_t>();
  for (std::int64_t row = 0; row < args.ids.elements(); ++row) {
    const std::int64_t entry = ids[row] - args.vocab_begin;
    if (entry >= 0 && entry < args.dtokens.dim(0)) uses.push_back({entry, row});
  }
  std::sort(uses.begin(), uses.end());
  return uses;
}

}  // namespace

void CpuBackend::do_embedding_forward(const EmbeddingForward& args) {
  parallel_for(args.ids.elements(), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(embed_rows)(args, begin, end);
  });
}

void CpuBackend::do_embedding_backward(const EmbeddingBackward& args) {
  if (!args.accumulate_tokens) do_fill(args.dtokens, 0);
  if (!args.accumulate_positions) do_fill(args.dpositions, 0);
  parallel_for(args.dy.dim(1), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(add_position_gradients)(args, begin, end);
  });
  const std::span<const Use> uses = sorted_uses(args);
  // A range handles the entries whose first use lies in it.
  parallel_for(std::ssize(uses), kRowGrain, [&](std::int64_t begin, std::int64_t end) {
    const auto* const range_end = uses.data() + end;
    const Use* use = uses.data() + begin;
    if (begin > 0) use = std::upper_bound(use, range_end, use[-1], entry_less);
    while (use < range_end) {
      const Use* const next = std::upper_bound(use, uses.data() + uses.size(), *use, entry_less);
      HWY_DYNAMIC_DISPATCH(add_entry_gradient)(args, {use, next});
      use = next;
    }
  });
}

}  // namespace teratron
#endif  // HWY_ONCE

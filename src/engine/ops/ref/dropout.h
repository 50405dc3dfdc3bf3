// The dropout mask by the definition at struct Dropout, and the operations that only add or mask.
#pragma once

#include "ops/backend.h"
#include "ops/ref/elements.h"

namespace teratron::reference {

// Factor of element e of the whole tensor: 0 or scale().
inline double dropout_factor(const Dropout& dropout, std::int64_t e) {
  if (!dropout.active()) return 1;
  const PhiloxCounter bits = dropout.random.bits(static_cast<std::uint64_t>(e / 8));
  const std::uint32_t word = bits[static_cast<std::size_t>(e % 8 / 2)];
  const std::uint32_t lane = e % 2 == 0 ? word & 0xFFFFU : word >> 16;
  return lane >= dropout.threshold() ? double{dropout.scale()} : 0;
}

// For element (b, t, j) of activations [batch, tokens, hidden].
inline double activation_dropout(const Dropout& dropout, std::int64_t b, std::int64_t t, std::int64_t j,
                                 std::int64_t hidden) {
  const std::int64_t row = (dropout.first_sample + b) * dropout.sequence_length + dropout.first_position + t;
  return dropout_factor(dropout, row * hidden + j);
}

// For the probability of local batch entry b and head h; query and key are global positions.
inline double attention_dropout(const Dropout& dropout, std::int64_t b, std::int64_t h, std::int64_t query,
                                std::int64_t key) {
  const std::int64_t head = (dropout.first_sample + b) * dropout.heads + dropout.first_head + h;
  return dropout_factor(dropout, (head * dropout.sequence_length + query) * dropout.key_stride() + key);
}

template <class C>
void residual_add(const ResidualAdd& args) {
  const std::int64_t batch = args.sum.dim(0), tokens = args.sum.dim(1), hidden = args.sum.dim(2);
  const Elements<C> sum(args.sum), residual(args.residual), branch(args.branch);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t j = 0; j < hidden; ++j) {
        const double factor = activation_dropout(args.dropout, b, t, j, hidden);
        sum(b, t, j) = static_cast<C>(double{residual(b, t, j)} + factor * double{branch(b, t, j)});
      }
    }
  }
}

template <class C>
void dropout_backward(const DropoutBackward& args) {
  const std::int64_t batch = args.dsum.dim(0), tokens = args.dsum.dim(1), hidden = args.dsum.dim(2);
  const Elements<C> dbranch(args.dbranch), dsum(args.dsum);
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t j = 0; j < hidden; ++j) {
        dbranch(b, t, j) = static_cast<C>(activation_dropout(args.dropout, b, t, j, hidden) * dsum(b, t, j));
      }
    }
  }
}

}  // namespace teratron::reference

// Costs of every slice of a sequence that begins and ends on a grid of tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace teratron::slicing {

// Tokens between the boundaries that slices may have: a multiple of `unit`, with at most `steps` of them in a sequence.
// If the sequence leaves room for 16 of them, also a multiple of 16. Kernels take tokens in blocks, so a slice that
// ends within one takes longer by the token: 132 tokens 2 % longer than 128 (bench/results/pipeline.md).
std::int64_t slice_grid(std::int64_t tokens, std::int64_t unit, std::int64_t steps);

class CostTable {
 public:
  // Boundaries at every `granularity` tokens and at the end. `cost(length, context)`: milliseconds of a slice of
  // `length` tokens that attends to `context` tokens before it; finite and not negative (InternalError).
  CostTable(std::int64_t tokens, std::int64_t granularity,
            const std::function<double(std::int64_t length, std::int64_t context)>& cost);

  std::int64_t tokens() const { return tokens_; }
  std::size_t intervals() const { return rows_.size() - 1; }  // grid steps in the sequence
  std::int64_t boundary(std::size_t index) const;             // its token

  // Costs of the slices that begin at boundary `begin` and end at begin + 1, begin + 2, ...
  std::span<const double> from(std::size_t begin) const {
    return std::span(costs_).subspan(rows_[begin], rows_[begin + 1] - rows_[begin]);
  }
  double of(std::size_t begin, std::size_t end) const { return costs_[rows_[begin] + end - begin - 1]; }

  // Slice lengths in tokens, of slices between these boundaries, the first of which is 0 and the last intervals().
  std::vector<std::int64_t> lengths(std::span<const std::size_t> boundaries) const;

 private:
  std::int64_t tokens_, granularity_;
  std::vector<std::size_t> rows_;  // where each boundary's costs begin
  std::vector<double> costs_;
};

}  // namespace teratron::slicing

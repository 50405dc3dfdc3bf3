// An output projection, tied or not, with its cross-entropy, in chunks of rows. Logits [chunk, vocabulary] are
// computed, turned into losses and, in training, overwritten by their gradient and used before the next chunk, so
// [tokens, vocabulary] never exists. Where the vocabulary is split over ranks, each computes its own columns, and three
// numbers a token are exchanged: the largest logit, the sum of exponentials, the target's logit (Megatron-LM section
// 3).
#pragma once

#include <algorithm>
#include <span>

#include "nn/linear.h"

namespace teratron {

struct LanguageModelHead {
  std::int64_t vocab_size;       // of the whole; columns beyond it are padding and stay out of the softmax
  std::int64_t vocab_begin = 0;  // the first column here

  struct Workspace {
    TensorRef logits;          // [chunk, columns here]
    TensorRef max, own_max;    // [chunk]: of all columns, of those here
    TensorRef sum_and_target;  // [2, chunk]: the sum of exponentials, the target's logit
    std::int64_t chunk() const { return logits.dim(0); }
  };

  static Workspace carve(const CallSizes& sizes, std::int64_t rows, std::int64_t columns, Carver& memory) {
    return {.logits = memory.take(sizes.compute, {rows, columns}),
            .max = memory.take(sizes.accumulation, {rows}),
            .own_max = memory.take(sizes.accumulation, {rows}),
            .sum_and_target = memory.take(sizes.accumulation, {2, rows})};
  }

  // Distances of each target's logit below others of its row.
  struct Gaps {
    TensorRef all;                          // A [T]: below the highest; 0: no token is likelier
    TensorRef lower;                        // A [T]: below the highest of lower ids; -infinity: there are none
    std::span<const std::int32_t> targets;  // [T], on the host
  };

  // loss[T] from x[T, hidden]; targets i32 [T]. Fills `gaps` if its tensors are given.
  void forward(const LayerPass& pass, const LinearWeights& weights, TensorRef loss, TensorRef x, TensorRef targets,
               const Workspace& workspace, const Gaps& gaps = {}) const {
    for (std::int64_t begin = 0; begin < x.dim(0); begin += workspace.chunk()) {
      const Chunk chunk = forward_chunk(pass, weights, loss, x, targets, workspace, begin);
      if (gaps.all) measure_gaps(pass, chunk, targets, begin, gaps);
    }
  }

  // Computes loss and the gradients of sum over T of weight * loss: dx[T, hidden], summed over the ranks (under
  // sequence parallelism only a rank's own rows are), and the weights'. It comes before other users of a tied weight,
  // whose gradient it overwrites without pass.accumulate.
  void forward_backward(const LayerPass& pass, const LinearWeights& weights, TensorRef loss, TensorRef dx, TensorRef x,
                        TensorRef targets, TensorRef weight, const Workspace& workspace) const {
    // Without any row the gradients still become zero.
    if (x.dim(0) == 0) weights.backward_weight(pass, workspace.logits.slice(0, 0, 0), x);
    LayerPass later = pass;  // of the chunks after the first
    later.accumulate = true;
    for (std::int64_t begin = 0; begin < x.dim(0); begin += workspace.chunk()) {
      const Chunk chunk = forward_chunk(pass, weights, loss, x, targets, workspace, begin);
      const std::int64_t end = begin + chunk.rows;
      pass.backend.cross_entropy_backward({.logits = chunk.logits,
                                           .max = chunk.max,
                                           .sum = chunk.sum,
                                           .targets = targets.slice(0, begin, end),
                                           .weight = weight.slice(0, begin, end),
                                           .vocab_begin = vocab_begin,
                                           .valid_columns = valid_columns(chunk.logits)});
      const TensorRef part = dx.slice(0, begin, end);
      weights.backward_input(pass, part, chunk.logits);
      Pending sum = pass.sequence_parallel ? Pending() : pass.start_sum(part);
      weights.backward_weight(begin > 0 ? later : pass, chunk.logits, x.slice(0, begin, end));
      sum.wait();
    }
    if (pass.sequence_parallel) pass.start_sum(dx).wait();
  }

 private:
  struct Chunk {
    std::int64_t rows;
    TensorRef logits;                           // [rows, columns here]
    TensorRef max, own_max, sum, target_logit;  // [rows]
  };

  Chunk forward_chunk(const LayerPass& pass, const LinearWeights& weights, TensorRef loss, TensorRef x,
                      TensorRef targets, const Workspace& workspace, std::int64_t begin) const {
    const std::int64_t rows = std::min(workspace.chunk(), x.dim(0) - begin), end = begin + rows;
    const TensorRef pair(workspace.sum_and_target.data, workspace.sum_and_target.dtype, {2, rows});
    const Chunk chunk{.rows = rows,
                      .logits = workspace.logits.slice(0, 0, rows),
                      .max = workspace.max.slice(0, 0, rows),
                      .own_max = workspace.own_max.slice(0, 0, rows),
                      .sum = pair.select(0, 0),
                      .target_logit = pair.select(0, 1)};
    weights.forward(pass, chunk.logits, x.slice(0, begin, end));
    pass.backend.cross_entropy_partials({.max = chunk.own_max,
                                         .sum = chunk.sum,
                                         .target_logit = chunk.target_logit,
                                         .logits = chunk.logits,
                                         .targets = targets.slice(0, begin, end),
                                         .vocab_begin = vocab_begin,
                                         .valid_columns = valid_columns(chunk.logits)});
    pass.backend.copy(chunk.max, chunk.own_max);
    pass.tensor.all_reduce(chunk.max, ReduceOp::kMax);
    pass.backend.cross_entropy_rescale({.sum = chunk.sum, .own_max = chunk.own_max, .max = chunk.max});
    pass.tensor.all_reduce(pair);
    pass.backend.cross_entropy_loss(
        {.loss = loss.slice(0, begin, end), .max = chunk.max, .sum = chunk.sum, .target_logit = chunk.target_logit});
    return chunk;
  }

  // Overwrites the chunk's maxima and sums. A row's highest logit of lower ids is that of a call for this row alone,
  // whose valid columns they are.
  void measure_gaps(const LayerPass& pass, const Chunk& chunk, TensorRef targets, std::int64_t begin,
                    const Gaps& gaps) const {
    const auto measure = [&](TensorRef gap, TensorRef max) {
      pass.backend.fill(chunk.sum, 1.0);  // whose logarithm is 0, and the loss then max - target_logit
      pass.backend.cross_entropy_loss({.loss = gap.slice(0, begin, begin + chunk.rows),
                                       .max = max,
                                       .sum = chunk.sum,
                                       .target_logit = chunk.target_logit});
    };
    measure(gaps.all, chunk.max);
    for (std::int64_t row = 0; row < chunk.rows; ++row) {
      const std::int64_t target = gaps.targets[static_cast<std::size_t>(begin + row)];
      pass.backend.cross_entropy_partials(
          {.max = chunk.own_max.slice(0, row, row + 1),
           .sum = chunk.sum.slice(0, row, row + 1),
           .target_logit = chunk.max.slice(0, row, row + 1),
           .logits = chunk.logits.slice(0, row, row + 1),
           .targets = targets.slice(0, begin + row, begin + row + 1),
           .vocab_begin = vocab_begin,
           .valid_columns = std::clamp<std::int64_t>(target - vocab_begin, 0, chunk.logits.dim(1))});
    }
    pass.tensor.all_reduce(chunk.own_max, ReduceOp::kMax);
    measure(gaps.lower, chunk.own_max);
  }

  std::int64_t valid_columns(TensorRef logits) const {
    return std::clamp<std::int64_t>(vocab_size - vocab_begin, 0, logits.dim(1));
  }
};

}  // namespace teratron

// The tied output projection with its cross-entropy, in chunks of rows: logits [chunk, vocabulary] are made, turned
// into losses and, for training, overwritten by their gradient and used up before the next chunk, so that
// [tokens, vocabulary] never exists.
#pragma once

#include <algorithm>

#include "nn/parameter.h"
#include "nn/step.h"

namespace teratron {

struct LanguageModelHead {
  std::int64_t vocab_size;  // columns beyond it are padding and stay out of the softmax

  struct Workspace {
    TensorRef logits;                  // [chunk, padded vocabulary]
    TensorRef max, sum, target_logit;  // [chunk]
    std::int64_t chunk() const { return logits.dim(0); }
  };

  // loss[T] from x[T, hidden]; targets i32 [T]
  void forward(const Step& step, const Parameter& tokens, TensorRef loss, TensorRef x, TensorRef targets,
               const Workspace& workspace) const {
    for (std::int64_t begin = 0; begin < x.dim(0); begin += workspace.chunk()) {
      forward_chunk(step, tokens, loss, x, targets, workspace, begin);
    }
  }

  // Also dx[T, hidden] and the token table's gradient, of sum over T of weight * loss. The first user of that gradient
  // in a step: without step.accumulate it is overwritten.
  void forward_backward(const Step& step, Parameter& tokens, TensorRef loss, TensorRef dx, TensorRef x,
                        TensorRef targets, TensorRef weight, const Workspace& workspace) const {
    for (std::int64_t begin = 0; begin < x.dim(0); begin += workspace.chunk()) {
      const std::int64_t end = forward_chunk(step, tokens, loss, x, targets, workspace, begin);
      const TensorRef logits = workspace.logits.slice(0, 0, end - begin);
      step.backend.cross_entropy_backward({.logits = logits,
                                           .max = workspace.max.slice(0, 0, end - begin),
                                           .sum = workspace.sum.slice(0, 0, end - begin),
                                           .targets = targets.slice(0, begin, end),
                                           .weight = weight.slice(0, begin, end),
                                           .valid_columns = vocab_size});
      step.backend.linear_weight_gradient({.dweight = tokens.gradient,
                                           .dy = logits,
                                           .x = x.slice(0, begin, end),
                                           .accumulate = step.accumulate || begin > 0});
      step.backend.linear_input_gradient({.dx = dx.slice(0, begin, end), .dy = logits, .weight = tokens.value});
    }
  }

 private:
  std::int64_t forward_chunk(const Step& step, const Parameter& tokens, TensorRef loss, TensorRef x, TensorRef targets,
                             const Workspace& workspace, std::int64_t begin) const {
    const std::int64_t end = std::min(begin + workspace.chunk(), x.dim(0));
    const TensorRef logits = workspace.logits.slice(0, 0, end - begin);
    const TensorRef max = workspace.max.slice(0, 0, end - begin);
    const TensorRef sum = workspace.sum.slice(0, 0, end - begin);
    const TensorRef target_logit = workspace.target_logit.slice(0, 0, end - begin);
    step.backend.linear_forward({.y = logits, .x = x.slice(0, begin, end), .weight = tokens.value});
    step.backend.cross_entropy_partials({.max = max,
                                         .sum = sum,
                                         .target_logit = target_logit,
                                         .logits = logits,
                                         .targets = targets.slice(0, begin, end),
                                         .valid_columns = vocab_size});
    step.backend.cross_entropy_loss(loss.slice(0, begin, end), max, sum, target_logit);
    return end;
  }
};

}  // namespace teratron

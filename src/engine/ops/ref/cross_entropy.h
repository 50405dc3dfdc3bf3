// Softmax cross-entropy in two steps, so that ranks which hold parts of the vocabulary exchange only the row maximum,
// sum and target logit (Megatron-LM, arXiv 1909.08053, section 3).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/backend.h"
#include "ops/ref/elements.h"
#include "ops/valid_columns.h"

namespace teratron::reference {

template <class C>
void cross_entropy_partials(const CrossEntropyPartials& args) {
  const Elements<Accumulator<C>> max(args.max), sum(args.sum), target_logit(args.target_logit);
  const Elements<C> logits(args.logits);
  const Elements<std::int32_t> targets(args.targets);
  const ValidColumns columns(args);
  for (std::int64_t t = 0; t < args.logits.dim(0); ++t) {
    const std::int64_t valid = columns.of(t);
    double row_max = -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < valid; ++c) row_max = std::max(row_max, double{logits(t, c)});
    double row_sum = 0;
    for (std::int64_t c = 0; c < valid; ++c) row_sum += std::exp(double{logits(t, c)} - row_max);
    const std::int64_t target = targets(t) - args.vocab_begin;
    const bool is_here = target >= 0 && target < valid;
    max(t) = static_cast<Accumulator<C>>(row_max);
    sum(t) = static_cast<Accumulator<C>>(row_sum);
    target_logit(t) = is_here ? Accumulator<C>{logits(t, target)} : Accumulator<C>{0};
  }
}

template <class C>
void cross_entropy_rescale(const CrossEntropyRescale& args) {
  const Elements<Accumulator<C>> sum(args.sum), own_max(args.own_max), max(args.max);
  for (std::int64_t t = 0; t < args.sum.dim(0); ++t) {
    const double shift = double{own_max(t)} - double{max(t)};
    sum(t) = std::isinf(own_max(t)) ? Accumulator<C>{0} : static_cast<Accumulator<C>>(sum(t) * std::exp(shift));
  }
}

template <class C>
void cross_entropy_loss(const CrossEntropyLoss& args) {
  const Elements<Accumulator<C>> loss(args.loss), max(args.max), sum(args.sum), target_logit(args.target_logit);
  for (std::int64_t t = 0; t < args.loss.dim(0); ++t) {
    loss(t) = static_cast<Accumulator<C>>(std::log(double{sum(t)}) + max(t) - target_logit(t));
  }
}

template <class C>
void weighted_sum(const WeightedSum& args) {
  const Elements<double> total(args.total);
  const Elements<Accumulator<C>> value(args.value), weight(args.weight);
  double sum = 0;
  for (std::int64_t t = 0; t < args.value.dim(0); ++t) {
    const double factor = args.count_below ? (double{value(t)} < *args.count_below ? 1.0 : 0.0) : double{value(t)};
    sum += factor * double{weight(t)};
  }
  total(0) += sum;
}

template <class C>
void cross_entropy_backward(const CrossEntropyBackward& args) {
  const Elements<C> logits(args.logits);
  const Elements<Accumulator<C>> max(args.max), sum(args.sum), weight(args.weight);
  const Elements<std::int32_t> targets(args.targets);
  const ValidColumns columns(args);
  for (std::int64_t t = 0; t < args.logits.dim(0); ++t) {
    const std::int64_t target = targets(t) - args.vocab_begin;
    for (std::int64_t c = 0; c < args.logits.dim(1); ++c) {
      const bool is_padding = c >= columns.of(t);
      const double probability = is_padding ? 0 : std::exp(double{logits(t, c)} - max(t)) / sum(t);
      const double one_hot = !is_padding && c == target ? 1 : 0;
      logits(t, c) = static_cast<C>(weight(t) * (probability - one_hot));
    }
  }
}

}  // namespace teratron::reference

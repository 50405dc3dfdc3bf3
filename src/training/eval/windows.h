// Scoring a long text with a model of limited context: overlapping windows in which every target counts exactly once
// (Megatron-LM, Appendix E.1, and its evaluation code's "overlapping evaluation").
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/samples/documents.h"
#include "model/language_model.h"

namespace teratron {

// One window of a text of `targets` + 1 tokens: inputs begin .. begin + length - 1, scored from first_scored on.
struct ScoringWindow {
  std::int64_t begin, length, first_scored;  // first_scored counts from begin
};

// Windows of at most `length` inputs, each `stride` further on: the first scores all of its targets, later ones those
// that no earlier one has. 0 < stride <= length; stride == length does not overlap.
std::vector<ScoringWindow> scoring_windows(std::int64_t targets, std::int64_t length, std::int64_t stride);

// How far a rank has come with its share of the windows.
struct ScoringState {
  std::int64_t scored = 0, targets = 0;
  double sum = 0;  // of the losses of those scored
};
using ScoringObserver = std::function<void(const ScoringState&)>;

// The sum of the losses (nats) of all targets of `tokens`. Windows of the same shape are computed as many at a time as
// the model's batch allows. Every rank of the model's mesh calls it: data-parallel ranks share the windows out, and
// all get the whole sum.
// UserError: a loss is not finite; names the token, counted from 1.
// `documents`: how windows treat the documents they hold; the model's executor must have been made with them.
double score_windows(LanguageModel& model, std::span<const std::int32_t> tokens, std::span<const ScoringWindow> windows,
                     const ScoringObserver& observer, const DocumentOptions& documents = {});

}  // namespace teratron

// Scores of a long text by a model of limited context: overlapping windows in which every target counts once
// (Megatron-LM, Appendix E.1; "overlapping evaluation" in its code).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/samples/documents.h"
#include "model/language_model.h"

namespace teratron {

// Window of a text of `targets` + 1 tokens: inputs begin .. begin + length - 1, scored from first_scored on.
struct ScoringWindow {
  std::int64_t begin, length, first_scored;  // first_scored counts from begin
};

// Windows of at most `length` inputs, each `stride` after the one before. A window scores the targets that no earlier
// one has. 0 < stride <= length; with stride == length windows do not overlap.
std::vector<ScoringWindow> scoring_windows(std::int64_t targets, std::int64_t length, std::int64_t stride);

// Progress of a rank with its share of the windows.
struct ScoringState {
  std::int64_t scored = 0, targets = 0;
  double sum = 0;  // of their losses
};
using ScoringObserver = std::function<void(const ScoringState&)>;

// Sum of the losses (nats) of all targets of `tokens`. Windows of equal shape are computed together, up to the model's
// batch. Every rank of the mesh calls it; data-parallel ranks share the windows, and all get the whole sum.
// `documents`: separation of the documents of a window; the model's executor must have been made with it. UserError: a
// loss is not finite; names the token, counted from 1.
double score_windows(LanguageModel& model, std::span<const std::int32_t> tokens, std::span<const ScoringWindow> windows,
                     const ScoringObserver& observer, const DocumentOptions& documents = {});

}  // namespace teratron

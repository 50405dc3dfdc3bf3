// Scale of a run for its observers: kinds of losses, batches, FLOPs of a token, peak, memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/batch_schedule.h"
#include "executor/model.h"
#include "run/observers/memory_gauge.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"
#include "train/updates.h"

namespace teratron {

struct RunScale {
  std::vector<ModelTraits::Loss> losses;  // kinds of the model's losses
  BatchSchedule batches;                  // of the whole run
  double flops_per_token = 0;             // of training
  double peak_flops = 0;                  // per second, of all ranks together
  int ranks = 1;
  std::shared_ptr<const Tokenizer> tokenizer;  // with --sample-prompt
  std::shared_ptr<MemoryGauge> memory;         // nullptr: not measured

  double tokens_per_second(const IterationReport& report) const {
    return static_cast<double>(report.tokens) / report.seconds;
  }
  double flops_per_second(const IterationReport& report) const { return tokens_per_second(report) * flops_per_token; }
  double mfu(const IterationReport& report) const { return flops_per_second(report) / peak_flops; }

  // Text of a sample's tokens.
  std::string decoded(std::span<const std::int32_t> tokens) const {
    StreamDecoder decoder(*tokenizer);
    std::string text;
    for (const std::int32_t token : tokens) text += decoder.push(token);
    return text + decoder.finish();
  }
};

}  // namespace teratron

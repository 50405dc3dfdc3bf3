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
#include "train/trainer.h"

namespace teratron {

struct RunScale {
  std::vector<ModelTraits::Loss> losses;  // kinds of the model's losses
  BatchSchedule batches;                  // of the whole run
  double flops_per_token = 0;             // of training
  double peak_flops = 0;                  // per second, of all ranks together
  int ranks = 1;
  std::shared_ptr<const Tokenizer> tokenizer;  // with --sample-prompt
  std::shared_ptr<MemoryGauge> memory;         // nullptr: is not measured

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

// Scale of a run whose trainer has started.
inline RunScale scale_of(const TrainConfig& config, const Trainer& trainer, double peak_flops,
                         std::shared_ptr<MemoryGauge> memory) {
  std::shared_ptr<const Tokenizer> tokenizer;
  if (!config.output.sample_prompts.empty()) {
    tokenizer = std::make_shared<const Tokenizer>(Tokenizer::load(config.model.tokenizer));
  }
  return {.losses = trainer.executor().loss_kinds(),
          .batches = trainer.batches(),
          .flops_per_token = trainer.task().config.training_flops_per_token(config.model.seq_length),
          .peak_flops = peak_flops,
          .ranks = config.layout.mesh().ranks(),
          .tokenizer = std::move(tokenizer),
          .memory = std::move(memory)};
}

}  // namespace teratron

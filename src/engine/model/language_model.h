// A model that continues text and its executor, with what reads its output token by token: losses for evaluation,
// logits for generation.
#pragma once

#include "executor/executor.h"
#include "model/decoder.h"

namespace teratron {

class LanguageModel : public Executor {
 public:
  // Plans the memory; allocates nothing. UserError lists the faults of the configuration.
  LanguageModel(Backend& backend, const ModelConfig& config, const ExecutorOptions& options,
                const std::shared_ptr<Mesh>& mesh = nullptr);

  // Targets begin .. begin + count - 1 of a sequence of a micro-batch.
  struct ScoredTargets {
    std::int64_t sequence = 0, begin = 0, count = 0;
  };
  // Losses (nats) of these targets, one after the other, on every stage. is_likeliest, unless empty: 1 for targets that
  // argmax takes (no token is likelier, and no equally likely one has a lower id), else 0. Weights are not used.
  void score(const MicroBatch& micro_batch, std::span<const ScoredTargets> scored, std::span<float> losses,
             std::span<float> is_likeliest = {});
  // The losses of every target from position `first_scored` of each sequence on, [batch, tokens - first_scored].
  void losses(const MicroBatch& micro_batch, std::int64_t first_scored, std::span<float> losses);

  // Logits of the last `rows` of `ids`, tokens of one sequence that stand at first_position and after, on every stage;
  // keys and values of earlier positions come from earlier calls with this cache (purpose kGeneration).
  // [rows, vocab_size]; no rows: the tokens only join the cache.
  void logits(std::span<const std::int32_t> ids, std::int64_t first_position, std::int64_t rows,
              std::span<float> logits, std::int64_t cache = 0);
  // Logits after one token of each of the first ids.size() sequences, [ids.size(), vocab_size]; that of sequence b is
  // at positions[b]. A sequence's logits do not depend on the others (Executor::extend_each).
  void next_logits(std::span<const std::int32_t> ids, std::span<const std::int32_t> positions, std::span<float> logits);

  Decoder& model() { return *model_; }
  const ModelConfig& config() const { return model_->config; }

 private:
  LanguageModel(Backend& backend, std::unique_ptr<Decoder> model, const ExecutorOptions& options,
                const std::shared_ptr<Mesh>& mesh);
  void compare_gaps(const Decoder::RowScores& scores, std::span<float> is_likeliest);
  void logits_of_rows(const EndCall& call, TensorRef normed, std::span<float> logits);
  void read_logits(TensorRef all, std::span<float> logits);

  std::unique_ptr<Decoder> model_;
};

}  // namespace teratron

// Encoder: a BERT and its executor, for vectors of tokens or texts; and the outputs of a fine-tuned BERT's head.
#pragma once

#include "executor/executor.h"
#include "model/bert.h"
#include "model/pooling.h"

namespace teratron {

class Encoder : public Executor {
 public:
  // Plans the memory; allocates nothing. UserError lists the faults of the configuration, or says that it is no BERT.
  Encoder(Backend& backend, const ModelConfig& config, const ExecutorOptions& options,
          const std::shared_ptr<Mesh>& mesh = nullptr);

  // Encodes ids, token types and lengths; targets and labels are not used. `encoded`: the vectors of all tokens,
  // [batch, tokens, hidden], on every stage. Vectors of padding are undefined.
  void encode(const MicroBatch& micro_batch, std::span<float> encoded);
  // Logits of pre-training for some of the tokens, whose numbers are `rows` (sequence * tokens + position):
  // [rows, vocab_size] on every rank. The model has the heads of pre-training.
  void predict_tokens(const MicroBatch& micro_batch, std::span<const std::int32_t> rows, std::span<float> logits);
  // The texts', [batch, hidden] in `vectors`, on every stage.
  void embed(const MicroBatch& micro_batch, Pooling pooling, std::span<float> vectors);

  Bert& model() { return *model_; }
  const ModelConfig& config() const { return model_->config; }

 private:
  Encoder(Backend& backend, std::unique_ptr<Bert> model, const ExecutorOptions& options,
          const std::shared_ptr<Mesh>& mesh);

  std::unique_ptr<Bert> model_;
};

// Encoder::embed() with any executor of a BERT, one that trains too.
void text_vectors(Executor& executor, const Bert& model, const MicroBatch& micro_batch, Pooling pooling,
                  std::span<float> vectors);

// Logits of the task's head, on every stage, from ids, token types and lengths, without dropout; labels are not used.
// `model` is the executor's, made for evaluation or training; its weights and gradients stay as they are. outputs:
// [batch, num_labels], [batch / kChoices, kChoices], [batch, 2, tokens] or [batch, tokens, num_labels] (BertTaskHead);
// those of padding are undefined. UserError: parts of groups of choices.
void task_outputs(Executor& executor, const Bert& model, const MicroBatch& micro_batch, std::span<float> outputs);

}  // namespace teratron

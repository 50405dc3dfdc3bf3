// A BERT and its executor, with what reads the encoder's output: a vector for each token, or one for each text.
#pragma once

#include <string_view>
#include <utility>

#include "executor/executor.h"
#include "model/bert.h"

namespace teratron {

// How the vectors of a text's tokens, [CLS] and [SEP] among them, become one, as sentence-transformers takes it.
enum class Pooling {
  kMean,
  kCls,             // the first token's
  kMax,             // the largest of all, value by value
  kMeanSqrtLength,  // their sum, over the square root of their number
  kWeightedMean,    // the n-th token counts n times
  kLastToken,       // [SEP]'s
};
// Their names there.
inline constexpr std::pair<std::string_view, Pooling> kPoolingNames[] = {
    {"mean", Pooling::kMean},
    {"cls", Pooling::kCls},
    {"max", Pooling::kMax},
    {"mean_sqrt_len_tokens", Pooling::kMeanSqrtLength},
    {"weightedmean", Pooling::kWeightedMean},
    {"lasttoken", Pooling::kLastToken}};
std::string_view name_of(Pooling pooling);

class Encoder : public Executor {
 public:
  // Plans the memory; allocates nothing. UserError lists the faults of the configuration, or says that it is no BERT.
  Encoder(Backend& backend, const ModelConfig& config, const ExecutorOptions& options,
          const std::shared_ptr<Mesh>& mesh = nullptr);

  // Of ids, token types and lengths; targets and labels are not used. The vectors of all tokens, [batch, tokens,
  // hidden] in `encoded`, on every stage. Those of padding mean nothing.
  void encode(const MicroBatch& micro_batch, std::span<float> encoded);
  // The texts', [batch, hidden] in `vectors`, on every stage.
  void embed(const MicroBatch& micro_batch, Pooling pooling, std::span<float> vectors);

  Bert& model() { return *model_; }
  const ModelConfig& config() const { return model_->config; }

 private:
  Encoder(Backend& backend, std::unique_ptr<Bert> model, const ExecutorOptions& options,
          const std::shared_ptr<Mesh>& mesh);

  std::unique_ptr<Bert> model_;
};

}  // namespace teratron

// A model that continues text, of any causal family (model/family.h): token embedding, with learned positions or
// without, causal layers that begin with a norm, final norm, output projection, which may be the token table.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "executor/model.h"
#include "model/config.h"
#include "nn/embedding.h"
#include "nn/language_model_head.h"

namespace teratron {

class Decoder : public Model {
 public:
  // This tensor-parallel rank's part. `stages`: those of a pipeline that share the vocabulary out. UserError lists the
  // faults of the configuration.
  explicit Decoder(const ModelConfig& model_config, GroupRank group = {}, GroupRank stages = {});

  const ModelConfig config;
  Embedding embedding;
  Norm final_norm;
  // [padded vocabulary, hidden], split as embedding.tokens; none: that table is used.
  std::optional<Parameter> output_weight;
  LanguageModelHead output;

  void visit(const ParameterVisitor& visitor) override;
  std::vector<ParameterBucket> buckets() override;
  void carve_head(const EndSizes& sizes, Carver& memory) const override { carve(sizes, memory); }
  void embed(const EndCall& call, TensorRef x) override;
  void embed_backward(const EndCall& call, TensorRef dx, bool has_head) override;
  void head(const EndCall& call, TensorRef x, TensorRef dx) override;
  TensorRef target_losses(const EndCall& call, TensorRef x) const override;
  TensorRef next_token_logits(const EndCall& call, TensorRef x, std::int64_t token) const override;

  // Parts of head(), for evaluation and generation token by token (model/language_model.h).
  // The final norm of x: [batch, tokens, hidden], whole on every tensor-parallel rank.
  TensorRef final_normed(const EndCall& call, TensorRef x) const;
  // The final norm of some rows [rows, hidden] of x; without sequence parallelism.
  TensorRef final_normed_rows(const EndCall& call, TensorRef rows) const;
  // Scores of targets i32 [rows] that follow the normed rows [rows, hidden], A [rows] each. `targets_here`: the targets
  // on the host; empty: no gaps.
  struct RowScores {
    TensorRef loss;               // nats
    TensorRef gap, gap_of_lower;  // LanguageModelHead::Gaps; null in training
  };
  RowScores row_scores(const EndCall& call, TensorRef normed_rows, TensorRef targets,
                       std::span<const std::int32_t> targets_here) const;
  // Logits of normed rows [rows, hidden], at most logits_rows() of them, by the tensor-parallel rank that holds their
  // columns: [ranks, rows, columns]. A row's do not depend on the others (LinearForward::rows_alone).
  TensorRef logits(const EndCall& call, TensorRef normed_rows) const;
  std::int64_t logits_rows(const EndCall& call) const { return head_memory(call).output.chunk(); }

 private:
  struct HeadMemory {
    RowScores rows;     // of all rows of the call; gaps not in training
    Norm::Saved final;  // of the rows of the stream here
    LanguageModelHead::Workspace output;
    TensorRef gathered_logits;  // [ranks, chunk, columns]; not in training, which needs no logits
  };
  // The final norm on every rank that has a part of the vocabulary. x is null on other stages than the last.
  TensorRef shared_normed(const EndCall& call, TensorRef x) const;
  LinearWeights output_weights() const { return {output_weight ? *output_weight : embedding.tokens}; }
  HeadMemory carve(const EndSizes& sizes, Carver& memory) const;
  // Logits of normed rows, for this rank's part of the vocabulary: [rows, columns].
  TensorRef own_logits(const EndCall& call, TensorRef normed_rows) const;
  HeadMemory head_memory(const EndCall& call) const {
    Carver memory = call.memory;
    return carve(call.sizes, memory);
  }
};

}  // namespace teratron

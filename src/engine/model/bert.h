// BERT (Devlin et al., arXiv 1810.04805) as the Megatron-LM paper trains it (sections 4.2 and 5.3): layers that see all
// tokens of a pair of texts, the prediction of masked tokens, and that of the order of the two texts; and its later
// kinds, RoBERTa and DistilBERT, which have fewer parts (model/bert_kind.h). Norms stand where
// ModelConfig::norm_placement says: `pre` with a final norm (Figure 7b), or `post` with one after the embedding (7a,
// the original).
#pragma once

#include <optional>

#include "executor/model.h"
#include "model/bert_heads.h"
#include "model/bert_task_head.h"
#include "model/config.h"
#include "model/text_vector_head.h"
#include "nn/embedding.h"

namespace teratron {

class Bert : public Model {
 public:
  // This tensor-parallel rank's part. UserError lists the faults of the configuration.
  explicit Bert(const ModelConfig& model_config, GroupRank group = {});

  const ModelConfig config;
  Embedding embedding;
  std::optional<Parameter> types;             // [BertKind::token_types, hidden]
  std::optional<Norm> embedding_norm;         // post alone
  std::optional<Norm> final_norm;             // pre alone
  std::optional<BertPooler> pooler;           // where ModelConfig::has_pooler() says so
  std::optional<BertPretrainingHeads> heads;  // with ModelHead::kPretraining
  std::optional<BertTaskHead> task;           // with the head of a task
  std::optional<TextVectorHead> vectors;      // with ModelHead::kVectors

  void visit(const ParameterVisitor& visitor) override;
  std::vector<ParameterBucket> buckets() override;
  void carve_embedding(const EndSizes& sizes, Carver& kept, Carver& memory) const override;
  void carve_head(const EndSizes& sizes, Carver& memory) const override { carve(sizes, memory); }
  void embed(const EndCall& call, TensorRef x) override;
  void embed_backward(const EndCall& call, TensorRef dx, bool has_head) override;
  void head(const EndCall& call, TensorRef x, TensorRef dx) override;

  // Parts of head(), for who reads the encoder's output (model/encoder.h).
  // The encoder's output, of x, the last layer's: [batch, tokens, hidden], whole on every tensor-parallel rank.
  TensorRef encoded(const EndCall& call, TensorRef x) const;
  // The pooler's, of that: [batch, hidden].
  TensorRef pooled(const EndCall& call, TensorRef encoded) const;
  // The logits of pre-training for rows of encoded [batch * tokens, hidden] (BertPretrainingHeads::token_logits).
  TensorRef token_logits(const EndCall& call, TensorRef encoded, TensorRef rows) const;
  // The logits of the task, of x (BertTaskHead::forward).
  TensorRef task_outputs(const EndCall& call, TensorRef x) const;

 private:
  // Activations that the embedding's norm keeps for backward; empty without one.
  struct Kept {
    TensorRef sum;  // stream: the norm's input
    Norm::Saved norm;
  };
  struct HeadMemory {
    Norm::Saved final;  // of the rows of the stream here
    BertPooler::Saved pooler;
    BertPretrainingHeads::Workspace heads;
    BertTaskHead::Workspace task;
    TextVectorHead::Workspace vectors;
  };

  Kept carve_kept(const CallSizes& sizes, Carver& kept) const;
  TensorRef carve_full(const CallSizes& sizes, Carver& memory) const;
  HeadMemory carve(const EndSizes& sizes, Carver& memory) const;
  HeadMemory head_memory(const EndCall& call) const {
    Carver memory = call.memory;
    return carve(call.sizes, memory);
  }
  void pretraining_head(const EndCall& call, TensorRef x, TensorRef dx);
  // Losses of the order of texts, and with `backward` the pooler's gradients.
  void predict_order(const EndCall& call, TensorRef encoded, const HeadMemory& memory, bool backward) const;
  // Input of the task's head, from the last layer's x.
  TensorRef read_by_task(const EndCall& call, TensorRef x) const;
  void task_head(const EndCall& call, TensorRef x, TensorRef dx);
  void vector_head(const EndCall& call, TensorRef x, TensorRef dx);
  // dencoded += the gradient of the rows that the pooler reads.
  void add_to_first_tokens(const LayerPass& pass, TensorRef dencoded, const BertPooler::Saved& saved) const;
  Dropout embedding_dropout(const LayerPass& pass) const {
    return pass.stream_dropout(config.hidden_dropout, RandomPurpose::kEmbeddingDropout, 0);
  }
};

}  // namespace teratron

// The names of a BERT's tensors: those of BertForPreTraining, of which BertModel has the body, and of the classes that
// are fine-tuned (bert_config.cc). Norms of old files have a gamma and a beta.
//
// RoBERTa's and DistilBERT's are below.
//
// seq_relationship has two rows, as our head of sentence orders has: 0 says that the second text follows the first, 1
// that it does not. A text that does not follow is a random one in the original BERT's pre-training, and the pair in
// the wrong order in ours.

#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/mapping.h"

namespace teratron {
namespace {

std::string with_ending(std::string_view name, std::string_view old_ending, std::string_view ending) {
  name.remove_suffix(old_ending.size());
  return std::string(name).append(ending);
}

std::optional<std::string> current_bert_name(std::string_view stored) {
  if (stored == "embeddings.position_ids") return std::nullopt;  // 0, 1, 2, ...
  constexpr std::string_view kGamma = ".gamma", kBeta = ".beta";
  if (stored.ends_with(kGamma)) return with_ending(stored, kGamma, ".weight");
  if (stored.ends_with(kBeta)) return with_ending(stored, kBeta, ".bias");
  return std::string(stored);
}

}  // namespace

const HuggingFaceMapping& bert_mapping() {
  static const HuggingFaceMapping mapping{
      .prefix = "bert.",
      .heads = {"cls.", "classifier.", "qa_outputs."},
      .pooler = "bert.pooler.",
      .layers = "bert.encoder.layer.",
      .of_model = {{"embedding.tokens", {"bert.embeddings.word_embeddings"}},
                   {"embedding.positions", {"bert.embeddings.position_embeddings"}},
                   {"embedding.types", {"bert.embeddings.token_type_embeddings"}},
                   {"embedding.norm", {"bert.embeddings.LayerNorm"}},
                   {.ours = "pooler", .theirs = {"bert.pooler.dense"}, .may_lack = true},
                   {.ours = "head.transform", .theirs = {"cls.predictions.transform.dense"}, .may_lack = true},
                   {.ours = "head.norm", .theirs = {"cls.predictions.transform.LayerNorm"}, .may_lack = true},
                   {.ours = "head", .theirs = {"cls.predictions"}, .may_lack = true},
                   {.ours = "order", .theirs = {"cls.seq_relationship"}, .may_lack = true},
                   {"classifier", {"classifier"}},
                   {"spans", {"qa_outputs"}}},
      .of_layer = {{"attention.qkv", {"attention.self.query", "attention.self.key", "attention.self.value"}},
                   {"attention.projection", {"attention.output.dense"}},
                   {"norm1", {"attention.output.LayerNorm"}},
                   {"mlp.up", {"intermediate.dense"}},
                   {"mlp.down", {"output.dense"}},
                   {"norm2", {"output.LayerNorm"}}},
      .copies = {{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"},
                 {"cls.predictions.decoder.bias", "cls.predictions.bias"}},
      .current_name = current_bert_name};
  return mapping;
}

// Names of RobertaForMaskedLM and of the classes that are fine-tuned. Positions begin after the number of the padding
// token, 1, so the first two rows of their table belong to no token.
const HuggingFaceMapping& roberta_mapping() {
  static const HuggingFaceMapping mapping{
      .prefix = "roberta.",
      .heads = {"lm_head.", "classifier.", "qa_outputs."},
      .pooler = "roberta.pooler.",
      .layers = "roberta.encoder.layer.",
      .of_model = {{"embedding.tokens", {"roberta.embeddings.word_embeddings"}},
                   {.ours = "embedding.positions",
                    .theirs = {"roberta.embeddings.position_embeddings"},
                    .skipped_rows = kRobertaFirstPosition},
                   {"embedding.types", {"roberta.embeddings.token_type_embeddings"}},
                   {"embedding.norm", {"roberta.embeddings.LayerNorm"}},
                   {.ours = "pooler", .theirs = {"roberta.pooler.dense"}, .may_lack = true},
                   {"head.transform", {"lm_head.dense"}},
                   {"head.norm", {"lm_head.layer_norm"}},
                   {"head", {"lm_head"}},
                   {"task_dense", {"classifier.dense"}},
                   {"classifier.out_proj", {"classifier.out_proj"}},
                   {"classifier", {"classifier"}},
                   {"spans", {"qa_outputs"}}},
      .of_layer = bert_mapping().of_layer,
      .copies = {{"lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight"},
                 {"lm_head.decoder.bias", "lm_head.bias"}},
      .current_name = current_bert_name};
  return mapping;
}

// Names of DistilBertForMaskedLM and of the classes that are fine-tuned.
const HuggingFaceMapping& distilbert_mapping() {
  static const HuggingFaceMapping mapping{
      .prefix = "distilbert.",
      .heads = {"vocab_", "pre_classifier.", "classifier.", "qa_outputs."},
      .pooler = "",
      .layers = "distilbert.transformer.layer.",
      .of_model = {{"embedding.tokens", {"distilbert.embeddings.word_embeddings"}},
                   {"embedding.positions", {"distilbert.embeddings.position_embeddings"}},
                   {"embedding.norm", {"distilbert.embeddings.LayerNorm"}},
                   {"head.transform", {"vocab_transform"}},
                   {"head.norm", {"vocab_layer_norm"}},
                   {"head", {"vocab_projector"}},
                   {"task_dense", {"pre_classifier"}},
                   {"classifier", {"classifier"}},
                   {"spans", {"qa_outputs"}}},
      .of_layer = {{"attention.qkv", {"attention.q_lin", "attention.k_lin", "attention.v_lin"}},
                   {"attention.projection", {"attention.out_lin"}},
                   {"norm1", {"sa_layer_norm"}},
                   {"mlp.up", {"ffn.lin1"}},
                   {"mlp.down", {"ffn.lin2"}},
                   {"norm2", {"output_layer_norm"}}},
      .copies = {{"vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight"}},
      .current_name = current_bert_name};
  return mapping;
}

}  // namespace teratron

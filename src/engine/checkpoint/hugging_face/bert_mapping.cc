// The names of a BERT's tensors: those of BertForPreTraining, of which BertModel has the body, and of the classes that
// are fine-tuned (bert_config.cc). Norms of old files have a gamma and a beta.
//
// seq_relationship has two rows, as our head of sentence orders has: 0 says that the second text follows the first, 1
// that it does not. A text that does not follow is a random one in the original BERT's pre-training, and the pair in
// the wrong order in ours.

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

}  // namespace teratron

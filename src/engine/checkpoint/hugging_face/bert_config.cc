#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"
#include "model/bert_kind.h"
#include "model/family.h"

namespace teratron {
namespace {

// Hugging Face's classes of what a model that reads texts ends in: their names after the kind's.
struct HeadClass {
  ModelHead head;
  const char* name;
};
constexpr HeadClass kClasses[] = {{ModelHead::kNone, "Model"},
                                  {ModelHead::kClassification, "ForSequenceClassification"},
                                  {ModelHead::kChoice, "ForMultipleChoice"},
                                  {ModelHead::kSpans, "ForQuestionAnswering"},
                                  {ModelHead::kTokens, "ForTokenClassification"},
                                  {ModelHead::kVectors, "Model"}};

constexpr std::string_view kOneLabel = "single_label_classification", kRegression = "regression";

std::string_view kind_in_classes(ModelKind kind) {
  return kind == ModelKind::kBert ? "Bert" : kind == ModelKind::kRoberta ? "Roberta" : "DistilBert";
}

std::string class_of(ModelKind kind, ModelHead head) {
  const char* const of_pretraining = bert_kind(kind).orders_sentences ? "ForPreTraining" : "ForMaskedLM";
  const char* const name =
      head == ModelHead::kPretraining ? of_pretraining : std::ranges::find(kClasses, head, &HeadClass::head)->name;
  return fmt::format("{}{}", kind_in_classes(kind), name);
}

// Head of a task if `architectures` names its class; otherwise the stored weights decide.
ModelHead read_head(const JsonFields& fields, ModelKind kind) {
  for (const HeadClass& known : kClasses) {
    if (is_task_head(known.head) && is_architecture(fields, class_of(kind, known.head))) return known.head;
  }
  return ModelHead::kPretraining;
}

// Why a task's head cannot be used; nothing: it can, or there is none.
void find_faults_of_head(const JsonFields& fields, const ModelConfig& model, std::vector<std::string>& faults) {
  if (!is_task_head(model.head)) return;
  const bool of_tokens = model.head == ModelHead::kTokens;  // whose class reads no problem_type
  if (of_tokens && model.num_labels < 2) faults.emplace_back("it has one label (there must be 2 at least)");
  // Without a problem_type, one label is a number, as in transformers.
  const std::string_view problem = model.num_labels == 1 ? kRegression : kOneLabel;
  if (!of_tokens && fields.has("problem_type") && fields.string("problem_type") != problem) {
    faults.push_back(fmt::format("problem_type is '{}' (there is {}{})", fields.string("problem_type"), problem,
                                 model.num_labels == 1 ? " of one label" : ""));
  }
  const double dropout = number_or(fields, "classifier_dropout", model.hidden_dropout);
  const bool drops = model.has_pooler() || of_tokens;
  if (model.kind != ModelKind::kDistilBert && drops && dropout != model.hidden_dropout) {
    faults.push_back(
        fmt::format("classifier_dropout is {} (it must be hidden_dropout_prob = {})", dropout, model.hidden_dropout));
  }
}

// Adds settings that our model does not compute.
void find_unsupported_in_bert(const JsonFields& fields, ModelKind kind, Phrases& unsupported) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (flag_or(fields, key, false)) unsupported.push_back(fmt::format("{} true", key));
  }
  if (fields.has("type_vocab_size")) {
    const std::int64_t types = fields.integer("type_vocab_size", 1, kLargestSize);
    const std::int64_t needed = bert_kind(kind).token_types;
    if (types != needed) unsupported.push_back(fmt::format("type_vocab_size {} (it must be {})", types, needed));
  }
  if (fields.has("position_embedding_type") && fields.string("position_embedding_type") != "absolute") {
    unsupported.push_back(
        fmt::format("position_embedding_type '{}' (there is absolute)", fields.string("position_embedding_type")));
  }
}

}  // namespace

namespace {

// Fields that BERT and RoBERTa have in common.
ModelConfig read_bert_like_config(ModelKind kind, const JsonFields& fields, Phrases& unsupported) {
  ModelConfig model{.kind = kind,
                    .num_layers = fields.integer("num_hidden_layers", 1, kLargestSize),
                    .hidden_size = fields.integer("hidden_size", 1, kLargestSize),
                    .num_attention_heads = fields.integer("num_attention_heads", 1, kLargestSize),
                    .vocab_size = fields.integer("vocab_size", 1, kLargestSize),
                    .max_position_embeddings = fields.integer("max_position_embeddings", 1, kLargestSize),
                    .layernorm_epsilon = number_or(fields, "layer_norm_eps", 1e-12),
                    .hidden_dropout = number_or(fields, "hidden_dropout_prob", 0.1),
                    .attention_dropout = number_or(fields, "attention_probs_dropout_prob", 0.1),
                    .init_method_std = number_or(fields, "initializer_range", 0.02),
                    .activation = read_gelu(fields, "hidden_act", "gelu", unsupported),
                    .norm_placement = NormPlacement::kPost,
                    .head = read_head(fields, kind)};
  model.intermediate_size = intermediate_size(fields.integer("intermediate_size", 1, kLargestSize), model);
  find_unsupported_in_bert(fields, kind, unsupported);
  return model;
}

// The model with its labels, or without the head that cannot be used.
ModelConfig with_head(ModelConfig model, const JsonFields& fields, Phrases& unusable_head) {
  if (tells_labels(model.head)) read_label_names(fields, model, unusable_head);
  find_faults_of_head(fields, model, unusable_head);
  if (unusable_head.empty()) return model;
  model.head = ModelHead::kNone;
  model.num_labels = ModelConfig().num_labels;
  model.label_names.clear();
  return model;
}

std::string_view name_of_gelu(const ModelConfig& model) {
  return model.activation == Activation::kGeluErf ? "gelu" : "gelu_new";
}

}  // namespace

ModelConfig read_bert_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head) {
  return with_head(read_bert_like_config(ModelKind::kBert, fields, unsupported), fields, unusable_head);
}

ModelConfig read_roberta_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head) {
  ModelConfig model = read_bert_like_config(ModelKind::kRoberta, fields, unsupported);
  model.max_position_embeddings -= kRobertaFirstPosition;
  const std::int64_t pad = fields.has("pad_token_id") ? fields.integer("pad_token_id", 0, kLargestSize) : 1;
  if (pad != kRobertaFirstPosition - 1) {
    unsupported.push_back(fmt::format("pad_token_id {} (it must be {})", pad, kRobertaFirstPosition - 1));
  }
  return with_head(std::move(model), fields, unusable_head);
}

// seq_classif_dropout and qa_dropout are of training; ours drops as in the layers.
ModelConfig read_distilbert_config(const JsonFields& fields, Phrases& unsupported, Phrases& unusable_head) {
  ModelConfig model{.kind = ModelKind::kDistilBert,
                    .num_layers = fields.integer("n_layers", 1, kLargestSize),
                    .hidden_size = fields.integer("dim", 1, kLargestSize),
                    .num_attention_heads = fields.integer("n_heads", 1, kLargestSize),
                    .vocab_size = fields.integer("vocab_size", 1, kLargestSize),
                    .max_position_embeddings = fields.integer("max_position_embeddings", 1, kLargestSize),
                    .layernorm_epsilon = 1e-12,
                    .hidden_dropout = number_or(fields, "dropout", 0.1),
                    .attention_dropout = number_or(fields, "attention_dropout", 0.1),
                    .init_method_std = number_or(fields, "initializer_range", 0.02),
                    .activation = read_gelu(fields, "activation", "gelu", unsupported),
                    .norm_placement = NormPlacement::kPost,
                    .head = read_head(fields, ModelKind::kDistilBert)};
  model.intermediate_size = intermediate_size(fields.integer("hidden_dim", 1, kLargestSize), model);
  return with_head(std::move(model), fields, unusable_head);
}

nlohmann::ordered_json bert_config(const ModelConfig& model, const FileContents& tokenizer) {
  require_expressible(model, {});
  const bool is_roberta = model.kind == ModelKind::kRoberta;
  nlohmann::ordered_json json = {
      {"architectures", {class_of(model.kind, model.head)}},
      {"model_type", model.family().name},
      {"num_hidden_layers", model.num_layers},
      {"num_attention_heads", model.num_attention_heads},
      {"hidden_size", model.hidden_size},
      {"intermediate_size", model.ffn_hidden_size()},
      {"max_position_embeddings", model.max_position_embeddings + (is_roberta ? kRobertaFirstPosition : 0)},
      {"vocab_size", model.vocab_size},
      {"type_vocab_size", bert_kind(model.kind).token_types},
      {"position_embedding_type", "absolute"},
      {"hidden_act", name_of_gelu(model)},
      {"layer_norm_eps", model.layernorm_epsilon},
      {"hidden_dropout_prob", model.hidden_dropout},
      {"attention_probs_dropout_prob", model.attention_dropout},
      {"initializer_range", model.init_method_std},
      {"pad_token_id", is_roberta ? kRobertaFirstPosition - 1 : special_token_id(tokenizer, "[PAD]").value_or(0)},
      {"tie_word_embeddings", true},
      {"is_decoder", false},
      {"use_cache", true},
  };
  if (is_task_head(model.head)) json["classifier_dropout"] = nullptr;  // that of hidden layers
  if (tells_labels(model.head)) write_label_names(model, json);
  return json;
}

nlohmann::ordered_json distilbert_config(const ModelConfig& model, const FileContents& tokenizer) {
  require_expressible(model, {});
  if (model.layernorm_epsilon != 1e-12) {
    throw_user_error("this DistilBERT's norms have the epsilon {}, and Hugging Face's have 1e-12",
                     model.layernorm_epsilon);
  }
  nlohmann::ordered_json json = {
      {"architectures", {class_of(model.kind, model.head)}},
      {"model_type", model.family().name},
      {"n_layers", model.num_layers},
      {"n_heads", model.num_attention_heads},
      {"dim", model.hidden_size},
      {"hidden_dim", model.ffn_hidden_size()},
      {"max_position_embeddings", model.max_position_embeddings},
      {"vocab_size", model.vocab_size},
      {"activation", name_of_gelu(model)},
      {"dropout", model.hidden_dropout},
      {"attention_dropout", model.attention_dropout},
      {"qa_dropout", model.hidden_dropout},
      {"seq_classif_dropout", model.hidden_dropout},
      {"initializer_range", model.init_method_std},
      {"pad_token_id", special_token_id(tokenizer, "[PAD]").value_or(0)},
      {"sinusoidal_pos_embds", false},
      {"tie_word_embeddings", true},
  };
  if (tells_labels(model.head)) write_label_names(model, json);
  return json;
}

}  // namespace teratron

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/label_names.h"
#include "checkpoint/model_config_json.h"
#include "model/bert.h"

namespace teratron {
namespace {

// Hugging Face's classes of what BERT ends in.
struct HeadClass {
  ModelHead head;
  const char* name;
};
constexpr HeadClass kClasses[] = {{ModelHead::kPretraining, "BertForPreTraining"},
                                  {ModelHead::kNone, "BertModel"},
                                  {ModelHead::kClassification, "BertForSequenceClassification"},
                                  {ModelHead::kChoice, "BertForMultipleChoice"},
                                  {ModelHead::kSpans, "BertForQuestionAnswering"}};

// The class of another task, whose head looks like that of kClassification.
constexpr const char* kUnknownClass = "BertForTokenClassification";

const char* class_of(ModelHead head) { return std::ranges::find(kClasses, head, &HeadClass::head)->name; }

// The head of a task if `architectures` names its class; otherwise weights tell what there is.
ModelHead read_head(const JsonFields& fields) {
  for (const HeadClass& known : kClasses) {
    if (is_task_head(known.head) && is_architecture(fields, known.name)) return known.head;
  }
  return is_architecture(fields, kUnknownClass) ? ModelHead::kNone : ModelHead::kPretraining;
}

// Why a task's head cannot be used; nothing: it can, or there is none.
void find_faults_of_head(const JsonFields& fields, const ModelConfig& model, std::vector<std::string>& faults) {
  if (is_architecture(fields, kUnknownClass)) {
    std::string known = "BertForMaskedLM";
    for (const HeadClass& one : kClasses) known += fmt::format(", {}", one.name);
    faults.push_back(fmt::format("the class is {} (there are {})", kUnknownClass, known));
  }
  if (!is_task_head(model.head)) return;
  constexpr std::string_view kOneLabel = "single_label_classification";
  if (fields.has("problem_type") && fields.string("problem_type") != kOneLabel) {
    faults.push_back(fmt::format("problem_type is '{}' (there is {})", fields.string("problem_type"), kOneLabel));
  }
  if (model.head == ModelHead::kClassification && model.num_labels < 2) {
    faults.emplace_back("it has one label, so that it makes a number of a text and tells no labels apart");
  }
  const double dropout = number_or(fields, "classifier_dropout", model.hidden_dropout);
  if (model.has_pooler() && dropout != model.hidden_dropout) {
    faults.push_back(
        fmt::format("classifier_dropout is {} (it must be hidden_dropout_prob = {})", dropout, model.hidden_dropout));
  }
}

// What would make the model compute something that ours does not.
void find_unsupported_in_bert(const JsonFields& fields, const ModelConfig& model,
                              std::vector<std::string>& unsupported) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (flag_or(fields, key, false)) unsupported.push_back(fmt::format("{} true", key));
  }
  const auto need = [&](const char* key, std::int64_t value, std::string_view why) {
    const std::int64_t there = fields.integer(key, 1, kLargestSize);
    if (there != value) unsupported.push_back(fmt::format("{} {} (it must be {}{})", key, there, why, value));
  };
  need("intermediate_size", model.ffn_hidden_size(), "4 hidden_size = ");
  if (fields.has("type_vocab_size")) need("type_vocab_size", Bert::kTokenTypes, "");
  if (fields.has("position_embedding_type") && fields.string("position_embedding_type") != "absolute") {
    unsupported.push_back(
        fmt::format("position_embedding_type '{}' (there is absolute)", fields.string("position_embedding_type")));
  }
}

}  // namespace

ModelConfig read_bert_config(const JsonFields& fields, std::vector<std::string>& unsupported,
                             std::vector<std::string>& unusable_head) {
  ModelConfig model{.kind = ModelKind::kBert,
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
                    .head = read_head(fields)};
  if (model.head == ModelHead::kClassification) read_label_names(fields, model, unusable_head);
  find_unsupported_in_bert(fields, model, unsupported);
  find_faults_of_head(fields, model, unusable_head);
  if (unusable_head.empty()) return model;
  model.head = ModelHead::kNone;
  model.num_labels = ModelConfig().num_labels;
  model.label_names.clear();
  return model;
}

nlohmann::ordered_json bert_config(const ModelConfig& model, const FileContents& tokenizer) {
  if (model.norm_placement != NormPlacement::kPost) {
    throw_user_error(
        "this BERT's norms come before its sub-layers (--layernorm-placement pre), and Hugging Face has no such model: "
        "its BERT has them behind (post)");
  }
  nlohmann::ordered_json json = {
      {"architectures", {class_of(model.head)}},
      {"model_type", "bert"},
      {"num_hidden_layers", model.num_layers},
      {"num_attention_heads", model.num_attention_heads},
      {"hidden_size", model.hidden_size},
      {"intermediate_size", model.ffn_hidden_size()},
      {"max_position_embeddings", model.max_position_embeddings},
      {"vocab_size", model.vocab_size},
      {"type_vocab_size", Bert::kTokenTypes},
      {"position_embedding_type", "absolute"},
      {"hidden_act", model.activation == Activation::kGeluErf ? "gelu" : "gelu_new"},
      {"layer_norm_eps", model.layernorm_epsilon},
      {"hidden_dropout_prob", model.hidden_dropout},
      {"attention_probs_dropout_prob", model.attention_dropout},
      {"initializer_range", model.init_method_std},
      {"pad_token_id", special_token_id(tokenizer, "[PAD]").value_or(0)},
      {"tie_word_embeddings", true},
      {"is_decoder", false},
      {"use_cache", true},
  };
  if (is_task_head(model.head)) json["classifier_dropout"] = nullptr;  // that of hidden layers
  if (model.head == ModelHead::kClassification) write_label_names(model, json);
  return json;
}

}  // namespace teratron

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/model_config_json.h"
#include "model/bert.h"
#include "model/label_names.h"

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

constexpr std::string_view kOneLabel = "single_label_classification", kRegression = "regression";

// A class of another task with a head like that of kClassification.
constexpr const char* kUnknownClass = "BertForTokenClassification";

const char* class_of(ModelHead head) { return std::ranges::find(kClasses, head, &HeadClass::head)->name; }

// Head of a task if `architectures` names its class; otherwise the stored weights decide.
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
  // Without a problem_type, one label is a number, as in transformers.
  const std::string_view problem = model.num_labels == 1 ? kRegression : kOneLabel;
  if (fields.has("problem_type") && fields.string("problem_type") != problem) {
    faults.push_back(fmt::format("problem_type is '{}' (there is {}{})", fields.string("problem_type"), problem,
                                 model.num_labels == 1 ? " of one label" : ""));
  }
  const double dropout = number_or(fields, "classifier_dropout", model.hidden_dropout);
  if (model.has_pooler() && dropout != model.hidden_dropout) {
    faults.push_back(
        fmt::format("classifier_dropout is {} (it must be hidden_dropout_prob = {})", dropout, model.hidden_dropout));
  }
}

// Adds settings that our model does not compute.
void find_unsupported_in_bert(const JsonFields& fields, std::vector<std::string>& unsupported) {
  for (const char* key : {"is_decoder", "add_cross_attention"}) {
    if (flag_or(fields, key, false)) unsupported.push_back(fmt::format("{} true", key));
  }
  if (fields.has("type_vocab_size")) {
    const std::int64_t types = fields.integer("type_vocab_size", 1, kLargestSize);
    if (types != Bert::kTokenTypes) {
      unsupported.push_back(fmt::format("type_vocab_size {} (it must be {})", types, Bert::kTokenTypes));
    }
  }
  if (fields.has("position_embedding_type") && fields.string("position_embedding_type") != "absolute") {
    unsupported.push_back(
        fmt::format("position_embedding_type '{}' (there is absolute)", fields.string("position_embedding_type")));
  }
}

using Json = nlohmann::json;
using Names = std::vector<std::string>;

// Numbers and words without quotes are names, too.
std::string text_of_name(const Json& name) { return name.is_string() ? name.get<std::string>() : name.dump(); }

Names names_by_row(const JsonFields& fields, Names& unsupported) {
  Names names;
  if (!fields.has("id2label")) return names;
  const Json& labels = fields.object("id2label");
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto found = labels.find(fmt::format("{}", row));
    if (found == labels.end()) {
      unsupported.push_back(fmt::format("id2label has {} names and none of {}", labels.size(), row));
      return {};
    }
    names.push_back(text_of_name(*found));
  }
  return names;
}

// Names of label2id, by row; none where they only count, or where it is no inverse of a list.
Names names_of_inverse(const JsonFields& fields, std::size_t count) {
  if (!fields.has("label2id")) return {};
  Names names(count);
  for (const auto& [name, row] : fields.object("label2id").items()) {
    const bool is_row = row.is_number_unsigned() && row.get<std::uint64_t>() < count;
    if (!is_row || !names[row.get<std::size_t>()].empty()) return {};
    names[row.get<std::size_t>()] = name;
  }
  return std::ranges::count(names, "") > 0 || are_numbers(names) ? Names() : names;
}

bool counts_only(const Json& labels_to_rows) {
  return std::ranges::all_of(labels_to_rows.items(), [](const auto& item) {
    return item.value().is_number_unsigned() &&
           (item.key() == default_label_name(item.value().template get<std::size_t>()) ||
            item.key() == item.value().dump());
  });
}

// Empty where label2id agrees with the names, or says nothing.
std::string contradiction(const JsonFields& fields, const Names& names) {
  if (!fields.has("label2id") || counts_only(fields.object("label2id"))) return "";
  const Json& rows = fields.object("label2id");
  for (std::size_t row = 0; row < names.size(); ++row) {
    for (const auto& [name, there] : rows.items()) {
      if (!is_same_label(name, names[row]) || there == row) continue;
      return fmt::format("id2label names row {} '{}', and label2id says that '{}' is {}", row, names[row], name,
                         there.dump());
    }
    const auto is_named = [&](const auto& item) { return is_same_label(item.key(), names[row]); };
    if (std::ranges::none_of(rows.items(), is_named)) {
      return fmt::format("id2label names row {} '{}', which label2id does not have", row, names[row]);
    }
  }
  return "";
}

std::string repeated_name(const Names& names) {
  for (std::size_t row = 0; row < names.size(); ++row) {
    const auto is_same = [&](const std::string& name) { return is_same_label(name, names[row]); };
    if (std::ranges::count_if(names, is_same) > 1) return names[row];
  }
  return "";
}

// Labels have names in id2label, and in label2id, its inverse. Fills in num_labels and label_names of kClassification.
// Names that only count (LABEL_0, ..), which transformers writes for labels without names, are left out. Faults are
// added to `unsupported`, a phrase each: rows without a name, names that occur twice, a label2id that differs.
void read_label_names(const JsonFields& fields, ModelConfig& model, std::vector<std::string>& unsupported) {
  model.num_labels = fields.has("num_labels") ? fields.integer("num_labels", 1, kLargestSize) : 2;
  Names names = names_by_row(fields, unsupported);
  if (!names.empty()) model.num_labels = std::ssize(names);
  if (model.num_labels == 1) return;  // a number, whose name says nothing
  if (names.empty() || are_numbers(names)) {
    model.label_names = names_of_inverse(fields, static_cast<std::size_t>(model.num_labels));
    return;
  }
  if (const std::string twice = repeated_name(names); !twice.empty()) {
    unsupported.push_back(fmt::format("id2label has the name '{}' twice", twice));
  } else if (const std::string other = contradiction(fields, names); !other.empty()) {
    unsupported.push_back(other);
  }
  model.label_names = std::move(names);
}

// Writes both keys; labels without names are LABEL_0, ..
void write_label_names(const ModelConfig& model, nlohmann::ordered_json& json) {
  if (model.num_labels == 1) json["problem_type"] = kRegression;
  for (std::size_t row = 0; row < static_cast<std::size_t>(model.num_labels); ++row) {
    const std::string name = model.label_names.empty() ? default_label_name(row) : model.label_names[row];
    json["id2label"][fmt::format("{}", row)] = name;
    json["label2id"][name] = row;
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
  model.intermediate_size = intermediate_size(fields.integer("intermediate_size", 1, kLargestSize), model);
  find_unsupported_in_bert(fields, unsupported);
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
        "its BERT has them after (post)");
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

// Family: what the models of one architecture have in common. A family is a row of one table: what it is called, what
// it can do, its function, how it is made. Hugging Face's files of it are mapped in checkpoint/hugging_face/.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "executor/model.h"
#include "model/adapters.h"
#include "model/config.h"

namespace teratron {

struct Family {
  ModelKind kind;
  std::string_view name;   // as in --model-type, checkpoint.json and Hugging Face's config.json
  std::string_view title;  // for people
  // Tokens see no later ones: the model continues text, has a loss of it, and computes sequences in slices. Else it
  // reads texts: their words are masked, and heads of tasks are trained on it.
  bool continues_text;
  std::int64_t usual_vocabulary;  // of the published tokenizer
  // Sets everything of a configuration but sizes and what training alone decides.
  void (*set_function)(ModelConfig&);
  std::span<const AdapterTarget> adapter_targets;  // empty: its models take no adapters
  // Operations of the head forward, a token of a sequence of so many (ModelConfig::training_flops_per_token).
  double (*head_operations)(const ModelConfig&, double tokens);
  std::unique_ptr<Model> (*make)(const ModelConfig&, GroupRank tensor, GroupRank stages);
};

std::span<const Family> families();
const Family& family_of(ModelKind kind);
const Family& encoder_family();                    // BERT: of those that read texts, the one that is pre-trained here
const Family* find_family(std::string_view name);  // null: there is none of this name
std::vector<std::string_view> family_names();

}  // namespace teratron

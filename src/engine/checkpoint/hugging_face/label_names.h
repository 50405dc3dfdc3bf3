// The names of labels in a Hugging Face config.json: id2label, and label2id, which is its inverse.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/json_fields.h"
#include "model/config.h"

namespace teratron {

// Fills in num_labels and label_names of a model of kClassification. Names that only count (LABEL_0, ..), which
// transformers write where nobody has named the labels, are none. What makes no sense is added to `unsupported`, a
// phrase each: rows without a name, names that occur twice, a label2id that says something else.
void read_label_names(const JsonFields& fields, ModelConfig& model, std::vector<std::string>& unsupported);

// Both keys; labels without names are LABEL_0, ..
void write_label_names(const ModelConfig& model, nlohmann::ordered_json& json);

}  // namespace teratron

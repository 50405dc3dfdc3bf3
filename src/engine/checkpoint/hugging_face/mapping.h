// Mapping from parameters to the tensors in Hugging Face's files: their names, and in which order their values are. A
// family is one table (gpt2_mapping.cc, bert_mapping.cc, ..); layers do not know it.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.h"
#include "checkpoint/tokenizer_files.h"
#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

struct HuggingFaceMapping {
  struct Module {
    std::string_view ours;
    std::vector<std::string_view> theirs;  // several: their tensors, one below the other along axis 0, are ours
    bool transposed = false;               // matrices are stored [inputs, outputs], ours are [outputs, inputs]
    bool by_head = false;                  // queries, keys and values of each head together, ours are apart
    bool may_lack = false;                 // an end that a model may be saved without; then it is drawn
    std::int64_t skipped_rows = 0;         // rows there before the first of ours, which nothing reads; written as 0
  };
  struct Copy {
    std::string_view name, of;
  };

  std::string_view prefix;              // of all names but those of heads; models saved without a head leave it out
  std::vector<std::string_view> heads;  // prefixes of heads; that of pre-training comes first
  std::string_view pooler;              // BERT: prefix of its pooler, which files of models without one may have
  std::string_view layers;              // what stands before a layer's number, "layers." in ours
  std::vector<Module> of_model, of_layer;
  // Tensors that are stored a second time where the model has them once; the output projection comes first.
  std::vector<Copy> copies;
  // Part of a stored name after the prefix, as current files spell it; none if it is no weight.
  std::optional<std::string> (*current_name)(std::string_view stored);

  // Full name of a stored tensor, with its prefix, as tensors_in() has it; none if it is no weight.
  std::optional<std::string> full_name(std::string_view stored) const;
};

const HuggingFaceMapping& gpt2_mapping();
const HuggingFaceMapping& bert_mapping();
const HuggingFaceMapping& roberta_mapping();
const HuggingFaceMapping& distilbert_mapping();
const HuggingFaceMapping& gpt_neox_mapping();
const HuggingFaceMapping& llama_mapping();  // and of Mistral, Qwen 2 and Qwen 3

// Files of a family: a row of one table.
struct HuggingFaceFormat {
  ModelKind kind;
  const HuggingFaceMapping& (*mapping)();
  // config.json. Phrases about unsupported settings are added to `unsupported`, those about a task's head alone to
  // `unusable_head`.
  ModelConfig (*read)(const JsonFields& fields, std::vector<std::string>& unsupported,
                      std::vector<std::string>& unusable_head);
  // Every key that from_pretrained needs. UserError: Hugging Face has no such model.
  nlohmann::ordered_json (*write)(const ModelConfig& model, const FileContents& tokenizer);
};
// UserError: files of this family are not read or written yet.
const HuggingFaceFormat& hugging_face_format(ModelKind kind);
inline const HuggingFaceMapping& hugging_face_mapping(ModelKind kind) { return hugging_face_format(kind).mapping(); }

struct HuggingFaceTensor {
  std::string name;
  // The tensor is stored as [rows, columns] of equal pieces, and ours has them [columns, rows]. {1, 1}: alike.
  std::array<std::int64_t, 2> transposed = {1, 1};
  std::vector<std::int64_t> shape;  // as stored there; without rows that only round the vocabulary's size up
  std::int64_t skipped_rows = 0;    // of these, the first that are not ours
};

struct HuggingFaceTensors {
  std::vector<HuggingFaceTensor> parts;  // equal shares of the parameter's axis 0, in order
  bool may_lack = false;
};

// Stored tensors of a parameter. InternalError: the mapping does not have it.
HuggingFaceTensors tensors_in(const HuggingFaceMapping& mapping, const ModelConfig& model, const Parameter& parameter);
inline HuggingFaceTensors hugging_face_tensors(const ModelConfig& model, const Parameter& parameter) {
  return tensors_in(hugging_face_mapping(model.kind), model, parameter);
}

}  // namespace teratron

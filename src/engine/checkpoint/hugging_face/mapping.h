// Where a parameter's values are in the files that Hugging Face's models are saved in: under which names, and turned
// how. A kind of model is one table (gpt2_mapping.cc, bert_mapping.cc); layers know nothing of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

struct HuggingFaceMapping {
  struct Module {
    std::string_view ours;
    std::vector<std::string_view> theirs;  // several: their tensors, one below the other along axis 0, are ours
    bool transposed = false;               // matrices are stored [inputs, outputs], ours are [outputs, inputs]
    bool may_lack = false;                 // an end that a model may be saved without; then it is drawn
  };
  struct Copy {
    std::string_view name, of;
  };

  std::string_view prefix;              // of all names but those of heads; models saved without a head leave it out
  std::vector<std::string_view> heads;  // what the names of heads begin with; that of pre-training comes first
  std::string_view pooler;  // of BERT: what its pooler's names begin with, which files of spans had once and do not use
  std::string_view layers;  // what stands before a layer's number, "layers." in ours
  std::vector<Module> of_model, of_layer;
  // Tensors that are stored a second time where the model has them once; the output projection comes first.
  std::vector<Copy> copies;
  // The part of a stored name behind the prefix, as it is written now; nothing for what is no weight.
  std::optional<std::string> (*current_name)(std::string_view stored);

  // The same with its prefix: the names that tensors_of has.
  std::optional<std::string> full_name(std::string_view stored) const;
};

const HuggingFaceMapping& hugging_face_mapping(ModelKind kind);
const HuggingFaceMapping& gpt2_mapping();
const HuggingFaceMapping& bert_mapping();

struct HuggingFaceTensor {
  std::string name;
  bool transposed = false;
  std::vector<std::int64_t> shape;  // as stored there; without rows that only round the vocabulary's size up
};

struct HuggingFaceTensors {
  std::vector<HuggingFaceTensor> parts;  // equal shares of the parameter's axis 0, in order
  bool may_lack = false;
};

// What is there of a parameter. InternalError: one that the kind of model does not have.
HuggingFaceTensors hugging_face_tensors(ModelKind kind, const Parameter& parameter);

}  // namespace teratron

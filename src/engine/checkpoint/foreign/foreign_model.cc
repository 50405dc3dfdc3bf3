#include "checkpoint/foreign/foreign_model.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "checkpoint/imported_weights.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/safetensors/finite_values.h"
#include "checkpoint/stored_tensor.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

ForeignWeights read_weights(ForeignFormat format, const fs::path& path) {
  switch (format) {
    case ForeignFormat::kNanoGpt: return read_nanogpt(path);
    case ForeignFormat::kLlmC: return read_llm_c(path);
    case ForeignFormat::kMegatron: break;
  }
  return read_megatron(path);
}

void check_model(const ForeignWeights& weights, const fs::path& path) {
  if (const std::vector<std::string> faults = weights.model.faults().texts(); !faults.empty()) {
    throw_user_error("'{}' describes a model that Teratron does not have: {}", path.string(), fmt::join(faults, "; "));
  }
  if (static_cast<std::size_t>(weights.model.num_layers) > weights.tensors.size()) {
    throw_user_error("'{}' is to have {} and has {} in all", path.string(), counted(weights.model.num_layers, "layer"),
                     counted(std::ssize(weights.tensors), "tensor"));
  }
}

std::vector<std::byte> whole_bytes_of(const ForeignTensor& tensor) {
  std::vector<std::byte> whole;
  tensor.pass_on(appending_sink(whole));
  return whole;
}

}  // namespace

ForeignModel::ForeignModel(ForeignFormat format, const fs::path& path)
    : path_(path), weights_(read_weights(format, path)) {
  check_model(weights_, path);
  parameters_ = declared_parameters(weights_.model);
  std::vector<ExpectedTensor> expected;
  for (const Parameter& parameter : parameters_) {
    const HuggingFaceTensor tensor = tensors_in(*weights_.mapping, weights_.model, parameter).parts.front();
    names_.push_back(tensor.name);
    if (!weights_.lacks_biases || find(names_.size() - 1) != nullptr || !tensor.name.ends_with(".bias")) {
      expected.push_back({tensor.name, tensor.shape});
    }
  }
  std::vector<SafetensorsEntry> there;
  for (const auto& [name, tensor] : weights_.tensors) {
    there.push_back({.name = name, .dtype_name = tensor.dtype_name, .dtype = tensor.dtype, .shape = tensor.shape});
  }
  const std::vector<std::string> faults = compare_tensors(there, expected);
  if (!faults.empty()) {
    throw_user_error("the weights in '{}' are not those of the model that it describes: {}", path.string(),
                     summary_of(faults));
  }
}

const ForeignTensor* ForeignModel::find(std::size_t parameter) const {
  const auto found = weights_.tensors.find(names_[parameter]);
  return found == weights_.tensors.end() ? nullptr : &found->second;
}

void ForeignModel::require_sound() const {
  for (const auto& [name, tensor] : weights_.tensors) {
    tensor.require_intact();
    FiniteValues values(*tensor.dtype);
    tensor.pass_on([&](std::span<const std::byte> bytes) { values.update(bytes); });
    if (!values.all()) {
      throw_user_error("tensor '{}' in '{}' has a value that is infinite or not a number; take an earlier checkpoint",
                       name, path_.string());
    }
  }
}

DType ForeignModel::dtype(std::size_t parameter) const {
  const ForeignTensor* const tensor = find(parameter);
  return tensor == nullptr ? DType::kF32 : *tensor->dtype;
}

void ForeignModel::pass_on(std::size_t index, const ByteSink& sink) const {
  const Parameter& parameter = parameters_[index];
  const ForeignTensor* const tensor = find(index);
  if (tensor == nullptr) {
    const std::vector<std::int64_t> shape = stored_shape(parameter);
    stream(std::vector<std::byte>(static_cast<std::size_t>(shape.at(0)) * sizeof(float)), sink);
  } else if (weights_.qkv_groups > 0 && parameter.split.blocks == 3) {
    stream_transposed(whole_bytes_of(*tensor), weights_.qkv_groups, parameter.split.blocks, sink);
  } else {
    tensor->pass_on(sink);
  }
}

fs::path import_foreign(const ForeignModel& model, const fs::path& tokenizer_folder, const fs::path& root) {
  check_takes_conversion(root, 0);
  model.require_sound();
  const ImportedWeights weights{.model = model.model(),
                                .parameters = model.parameters(),
                                .dtype_of = [&](std::size_t i) { return model.dtype(i); },
                                .pass_on = [&](std::size_t i, const ByteSink& sink) { model.pass_on(i, sink); }};
  return write_import(weights, find_tokenizer_files(tokenizer_folder), root);
}

nlohmann::json json_of(const PickleValue& dictionary) {
  nlohmann::json json = nlohmann::json::object();
  for (std::size_t i = 0; i + 1 < dictionary.items.size(); i += 2) {
    const PickleValue &key = *dictionary.items[i], &value = *dictionary.items[i + 1];
    if (!key.is(PickleKind::kText)) continue;
    nlohmann::json& to = json[std::string(key.text)];
    switch (value.kind) {
      case PickleKind::kBool: to = value.integer != 0; break;
      case PickleKind::kInteger: to = value.integer; break;
      case PickleKind::kNumber: to = value.number; break;
      case PickleKind::kText: to = std::string(value.text); break;
      case PickleKind::kNone: break;
      default: to = nlohmann::json::array(); break;
    }
  }
  return json;
}

ForeignTensor tensor_of(const std::shared_ptr<const TorchFile>& file, const PickleValue& value,
                        const std::string& name) {
  const std::optional<TorchTensor> tensor = file->tensor(value, name);
  if (!tensor) throw_user_error("'{}' in '{}' is no tensor", name, file->path().string());
  return {.dtype = tensor->dtype,
          .dtype_name = tensor->dtype_name,
          .shape = tensor->shape,
          .pass_on = [file, tensor = *tensor](const ByteSink& sink) { file->pass_on(tensor, sink); },
          .require_intact = [file, tensor = *tensor] { file->require_intact(tensor); }};
}

}  // namespace teratron

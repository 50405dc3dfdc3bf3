#include "checkpoint/hugging_face/model_folder.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_list.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Location = HuggingFaceWeights::Location;

constexpr std::string_view kTokens = "transformer.wte.weight";

std::vector<Parameter> declared_parameters(const ModelConfig& config) {
  std::vector<Parameter> parameters;
  make_model(config)->visit([&](Parameter& parameter) { parameters.push_back(parameter); });
  return parameters;
}

// The output projection may be stored beside the embedding that it is tied to; then both must be the same.
void check_head(const HuggingFaceWeights& weights, bool tied, const fs::path& folder) {
  const auto head = weights.tensors().find(std::string(kOutputProjection));
  if (head == weights.tensors().end()) {
    if (!tied) {
      throw_user_error("'{}' unties the output projection (tie_word_embeddings false) and does not hold it ({})",
                       folder.string(), kOutputProjection);
    }
    return;
  }
  const Location& there = head->second;
  const auto tokens = weights.tensors().find(std::string(kTokens));
  const bool same = tokens != weights.tensors().end() && there.entry->dtype_name == tokens->second.entry->dtype_name &&
                    there.entry->shape == tokens->second.entry->shape &&
                    std::ranges::equal(there.bytes(), tokens->second.bytes());
  if (!same) {
    throw_user_error("'{}': {} differs from {}; Teratron's GPT-2 has one tensor for both, so this model cannot be used",
                     there.file->path().string(), kOutputProjection, kTokens);
  }
}

void check_tensors(const HuggingFaceWeights& weights, std::span<const HuggingFaceTensor> wanted,
                   const fs::path& folder) {
  std::vector<SafetensorsEntry> there;
  for (const auto& [name, place] : weights.tensors()) {
    if (name == kOutputProjection) continue;
    there.push_back(*place.entry);
    there.back().name = name;
  }
  std::vector<ExpectedTensor> expected;
  for (const HuggingFaceTensor& tensor : wanted) expected.push_back({tensor.name, tensor.shape});
  const std::vector<std::string> faults = compare_tensors(there, expected);
  if (!faults.empty()) {
    throw_user_error("the weights in '{}' are not those of the model in its config.json: {}", folder.string(),
                     summary_of(faults));
  }
}

}  // namespace

HuggingFaceFolder::HuggingFaceFolder(const fs::path& folder)
    : config_(read_hugging_face_config(folder / "config.json")), weights_(folder) {
  if (static_cast<std::size_t>(config_.model.num_layers) > weights_.tensors().size()) {
    throw_user_error("'{}' has {} layers in its config.json and {} tensors in all", folder.string(),
                     config_.model.num_layers, weights_.tensors().size());
  }
  parameters_ = declared_parameters(config_.model);
  for (const Parameter& parameter : parameters_) {
    tensors_.push_back(hugging_face_tensor(config_.model.kind, parameter));
  }
  check_tensors(weights_, tensors_, folder);
  check_head(weights_, config_.tied, folder);
}

void HuggingFaceFolder::pass_on(std::size_t parameter, const ByteSink& sink) const {
  const Location& from = place(parameter);
  const std::vector<std::int64_t>& shape = from.entry->shape;
  if (tensors_[parameter].transposed) {
    stream_transposed(from.bytes(), shape[0], shape[1], size_of(*from.entry->dtype), sink);
  } else {
    stream(from.bytes(), sink);
  }
  from.release();
}

}  // namespace teratron

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/hugging_face/gpt2_config.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/hugging_face/weights.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tensor_list.h"
#include "checkpoint/tokenizer_files.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Location = HuggingFaceWeights::Location;

constexpr std::string_view kTokens = "transformer.wte.weight";

std::vector<Parameter> parameters_of(const ModelConfig& config) {
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

// One type for all that holds every value exactly.
DType common_dtype(std::span<const Location> places) {
  const bool wide =
      std::ranges::any_of(places, [](const Location& place) { return *place.entry->dtype == DType::kF64; });
  return wide ? DType::kF64 : DType::kF32;
}

}  // namespace

fs::path import_from_hugging_face(const fs::path& folder, const fs::path& root) {
  const HuggingFaceConfig config = read_hugging_face_config(folder / "config.json");
  const HuggingFaceWeights weights(folder);
  if (static_cast<std::size_t>(config.model.num_layers) > weights.tensors().size()) {
    throw_user_error("'{}' has {} layers in its config.json and {} tensors in all", folder.string(),
                     config.model.num_layers, weights.tensors().size());
  }
  const std::vector<Parameter> parameters = parameters_of(config.model);
  std::vector<HuggingFaceTensor> there;
  for (const Parameter& parameter : parameters) there.push_back(hugging_face_tensor(config.model.kind, parameter));
  check_tensors(weights, there, folder);
  check_head(weights, config.tied, folder);
  std::error_code error;
  if (!iterations_in(root).empty() || fs::exists(root / kTrackerFile, error)) {
    throw_user_error("'{}' holds checkpoints already; import into a folder of its own", root.string());
  }

  CheckpointWriter writer(root, config.model, {});
  std::vector<Location> places;
  for (const HuggingFaceTensor& tensor : there) places.push_back(weights.tensors().at(tensor.name));
  const DType dtype = common_dtype(places);
  std::vector<SafetensorsDeclaration> declarations;
  for (const Parameter& parameter : parameters) {
    declarations.push_back({parameter.name, dtype, stored_shape(parameter)});
  }
  writer.write_tensors(tensor_file_name(TensorKind::kModel), declarations, [&](std::size_t i, const ByteSink& sink) {
    const SafetensorsEntry& from = *places[i].entry;
    const ByteSink converted = converting_sink(*from.dtype, dtype, sink);
    if (there[i].transposed) {
      stream_transposed(places[i].bytes(), from.shape[0], from.shape[1], size_of(*from.dtype), converted);
    } else {
      stream(places[i].bytes(), converted);
    }
    places[i].release();
  });
  for (const auto& [name, content] : find_tokenizer_files(folder)) writer.write_file(name, content);
  return writer.publish();
}

}  // namespace teratron

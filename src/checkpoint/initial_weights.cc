#include "checkpoint/initial_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tokenizer_files.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

bool is_hugging_face_folder(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / "config.json", error) && !fs::exists(path / kTrackerFile, error) &&
         !fs::exists(path / kManifestFile, error);
}

// The parameters that the model in `path` was saved with.
std::vector<Parameter> stored_parameters(const fs::path& path, const ModelConfig& stored) {
  if (!is_hugging_face_folder(path)) return declared_parameters(stored);
  const HuggingFaceFolder there(path);
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < there.parameters().size(); ++i) {
    if (!there.is_drawn(i)) parameters.push_back(there.parameters()[i]);
  }
  return parameters;
}

// What a model with the head of a task finds in `path`.
struct CommonWeights {
  ModelConfig stored;
  std::vector<Parameter*> there, lacking;
};

CommonWeights common_weights(const fs::path& path, const ModelConfig& config, std::span<Parameter* const> parameters) {
  CommonWeights common{
      .stored = find_weights(path).model, .there = {parameters.begin(), parameters.end()}, .lacking = {}};
  check_same_model(path, common.stored, config, /*heads=*/false);
  if (differences(common.stored, config).empty()) return common;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const Parameter& stored : stored_parameters(path, common.stored)) shapes[stored.name] = stored_shape(stored);
  const auto is_there = [&](const Parameter* parameter) {
    const auto found = shapes.find(parameter->name);
    return found != shapes.end() && found->second == stored_shape(*parameter);
  };
  const auto lacking = std::ranges::stable_partition(common.there, is_there);
  common.lacking.assign(lacking.begin(), lacking.end());
  common.there.erase(lacking.begin(), lacking.end());
  return common;
}

}  // namespace

WeightSource find_weights(const fs::path& path) {
  WeightSource source{.folder = path, .is_hugging_face = is_hugging_face_folder(path)};
  if (source.is_hugging_face) {
    const HuggingFaceFolder there(path);
    source.model = there.model();
    source.drawn = there.drawn();
  } else {
    const CheckpointInfo info = read_checkpoint_info(path);
    source.folder = info.folder;
    source.model = info.model;
    source.state = info.state;
    for (const CheckpointFileInfo& file : info.files) source.checked_bytes += file.bytes;
  }
  source.has_tokenizer = !find_tokenizer_files(source.folder).empty();
  return source;
}

std::vector<std::string> drawn_weights(const fs::path& path, const ModelConfig& model) {
  const WeightSource source = find_weights(path);
  if (!is_task_head(model.head) || differences(source.model, model).empty()) return source.drawn;
  std::vector<Parameter> declared = declared_parameters(model);
  std::vector<Parameter*> parameters;
  for (Parameter& parameter : declared) parameters.push_back(&parameter);
  std::vector<std::string> names;
  for (const Parameter* parameter : common_weights(path, model, parameters).lacking) names.push_back(parameter->name);
  return names;
}

std::string text_of_drawn(const fs::path& folder, const std::vector<std::string>& drawn) {
  if (drawn.empty()) return "";
  return fmt::format("warning: '{}' was saved without {}; they are drawn, as initial weights are", folder.string(),
                     fmt::join(drawn, ", "));
}

std::vector<Parameter*> load_weights(const fs::path& path, const ModelConfig& config,
                                     std::span<Parameter* const> parameters, Backend& backend, bool verify) {
  CommonWeights common{.stored = config, .there = {parameters.begin(), parameters.end()}, .lacking = {}};
  if (is_task_head(config.head)) common = common_weights(path, config, parameters);
  if (is_hugging_face_folder(path)) {
    load_from_hugging_face(path, common.stored, common.there, backend, verify);
  } else {
    load_checkpoint(path, common.stored, common.there, backend, {.optimizer = false, .verify = verify});
  }
  return common.lacking;
}

}  // namespace teratron

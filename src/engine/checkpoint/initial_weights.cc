#include "checkpoint/initial_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "checkpoint/adapter_base.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tokenizer_files.h"
#include "model/label_names.h"
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

bool has_same_labels(const ModelConfig& stored, const ModelConfig& asked) {
  if (!tells_labels(asked.head)) return true;
  return stored.num_labels == asked.num_labels && rows_by_label(stored.label_names, asked.label_names);
}

// Whether `config` may take the weights of a model with another head, and draw what that lacks.
bool takes_other_heads(const ModelConfig& config) { return config.head != ModelHead::kNone; }

std::string_view purpose_of(ModelHead head) {
  switch (head) {
    case ModelHead::kClassification: return "labels";
    case ModelHead::kChoice: return "choices";
    case ModelHead::kSpans: return "spans";
    case ModelHead::kTokens: return "labels of tokens";
    default: return "pre-training";
  }
}

// The weights of another model that one with a head can take.
struct CommonWeights {
  ModelConfig stored;
  std::vector<Parameter*> there, lacking;
};

CommonWeights common_weights(const fs::path& path, const ModelConfig& stored, const ModelConfig& config,
                             std::span<Parameter* const> parameters) {
  CommonWeights common{.stored = stored, .there = {parameters.begin(), parameters.end()}, .lacking = {}};
  check_same_model(path, common.stored, config, /*heads=*/false);
  if (differences(common.stored, config).empty()) return common;
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const Parameter& parameter : stored_parameters(path, stored)) shapes[parameter.name] = stored_shape(parameter);
  // The classifiers of numbers and of choices have one shape.
  const bool has_other_head = config.head != common.stored.head || !has_same_labels(common.stored, config);
  const auto is_there = [&](const Parameter* parameter) {
    if (has_other_head && has_label_rows(*parameter)) return false;
    const auto found = shapes.find(parameter->name);
    return found != shapes.end() && found->second == stored_shape(*parameter);
  };
  const auto lacking = std::ranges::stable_partition(common.there, is_there);
  common.lacking.assign(lacking.begin(), lacking.end());
  common.there.erase(lacking.begin(), lacking.end());
  return common;
}

// drawn_weights() of `path`; `source` is find_weights() of it.
std::vector<std::string> drawn_from(const fs::path& path, const WeightSource& source, const ModelConfig& model) {
  if (model.adapters.active()) return {};  // adapters are new, and say so elsewhere
  if (!takes_other_heads(model) || differences(source.model, model).empty()) return source.drawn;
  std::vector<Parameter> declared = declared_parameters(model);
  std::vector<Parameter*> parameters;
  for (Parameter& parameter : declared) parameters.push_back(&parameter);
  std::vector<std::string> names;
  for (const Parameter* parameter : common_weights(path, source.model, model, parameters).lacking) {
    names.push_back(parameter->name);
  }
  return names;
}

}  // namespace

WeightSource source_of(const CheckpointInfo& checkpoint) {
  WeightSource source{.folder = checkpoint.folder,
                      .run = checkpoint.run,
                      .model = checkpoint.model,
                      .state = checkpoint.state,
                      .has_optimizer = checkpoint.has_optimizer,
                      .has_tokenizer = holds_tokenizer(checkpoint.folder)};
  for (const CheckpointFileInfo& file : checkpoint.files) source.checked_bytes += file.bytes;
  return source;
}

WeightSource find_weights(const fs::path& path) {
  if (!is_hugging_face_folder(path)) return source_of(read_checkpoint_info(path));
  const HuggingFaceFolder there(path);
  return {.folder = path,
          .is_hugging_face = true,
          .model = there.model(),
          .has_tokenizer = holds_tokenizer(path),
          .drawn = there.drawn(),
          .unusable_head = there.unusable_head()};
}

std::vector<std::string> drawn_weights(const fs::path& path, const ModelConfig& model) {
  return drawn_from(path, find_weights(path), model);
}

std::string text_of_drawn(const fs::path& folder, const std::vector<std::string>& drawn) {
  if (drawn.empty()) return "";
  return fmt::format("warning: '{}' was saved without {}; they are drawn, as initial weights are", folder.string(),
                     fmt::join(drawn, ", "));
}

std::string warning_of_drawn(const fs::path& path, const ModelConfig& model) {
  const WeightSource source = find_weights(path);
  const std::vector<std::string> drawn = drawn_from(path, source, model);
  const ModelConfig& stored = source.model;
  if (!source.unusable_head.empty()) {
    return fmt::format("warning: the head of the model in '{}' is left out: {}; {} are drawn", path.string(),
                       source.unusable_head, fmt::join(drawn, ", "));
  }
  if (drawn.empty() || stored.head == model.head) {
    if (has_same_labels(stored, model)) return text_of_drawn(path, drawn);
    return fmt::format("warning: the model in '{}' has {}, and {} are needed: {} are drawn anew", path.string(),
                       text_of_labels(stored.num_labels, stored.label_names),
                       text_of_labels(model.num_labels, model.label_names), fmt::join(drawn, ", "));
  }
  const std::string unused =
      is_task_head(stored.head) ? fmt::format("; its head for {} is left out", purpose_of(stored.head)) : "";
  return text_of_drawn(path, drawn) + unused;
}

namespace {

// Loads a model with adapters: its frozen weights, and the adapters where `path` holds some.
std::vector<Parameter*> load_adapted(const fs::path& path, const ModelConfig& config,
                                     std::span<Parameter* const> parameters, Backend& backend, bool verify) {
  const WeightSource source = find_weights(path);
  std::vector<Parameter*> frozen, adapters;
  for (Parameter* const parameter : parameters) (parameter->frozen ? frozen : adapters).push_back(parameter);
  if (source.model.adapters.active()) {
    load_base(source.folder, source.run.base, config, frozen, backend, verify);
    load_checkpoint(source.folder, config, adapters, backend, {.optimizer = false, .verify = verify});
    return {};
  }
  ModelConfig whole = config;
  whole.adapters = {};
  std::vector<Parameter*> lacking = load_weights(path, whole, frozen, backend, verify);
  lacking.insert(lacking.end(), adapters.begin(), adapters.end());
  return lacking;
}

}  // namespace

std::vector<Parameter*> load_weights(const fs::path& path, const ModelConfig& config,
                                     std::span<Parameter* const> parameters, Backend& backend, bool verify) {
  if (config.adapters.active()) return load_adapted(path, config, parameters, backend, verify);
  CommonWeights common{.stored = config, .there = {parameters.begin(), parameters.end()}, .lacking = {}};
  if (takes_other_heads(config)) common = common_weights(path, find_weights(path).model, config, parameters);
  // Rows of the same labels are read in the order of `config`.
  if (common.stored.head == config.head && has_same_labels(common.stored, config)) {
    common.stored.label_names = config.label_names;
  }
  if (is_hugging_face_folder(path)) {
    load_from_hugging_face(path, common.stored, common.there, backend, verify);
  } else {
    load_checkpoint(path, common.stored, common.there, backend, {.optimizer = false, .verify = verify});
  }
  return common.lacking;
}

}  // namespace teratron

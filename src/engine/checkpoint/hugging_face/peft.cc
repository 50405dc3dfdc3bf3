// Adapters as PEFT's folders hold them.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_fields.h"
#include "base/json_string.h"
#include "checkpoint/adapter_base.h"
#include "checkpoint/adapter_files.h"
#include "checkpoint/hugging_face/export_folder.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/initial_weights.h"
#include "checkpoint/native/checkpoint_writer.h"
#include "checkpoint/safetensors/finite_values.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tensor_source.h"
#include "checkpoint/weights_file.h"
#include "model/adapters.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr const char *kConfig = "adapter_config.json", *kWeights = "adapter_model.safetensors",
                     *kPickledWeights = "adapter_model.bin";
constexpr std::int64_t kMostRank = 1 << 20;

// A tensor of an adapter: its name here and in PEFT's file.
struct PeftTensor {
  std::string ours, theirs;
  std::vector<std::int64_t> shape;
  std::array<std::int64_t, 2> transposed = {1, 1};  // HuggingFaceTensor::transposed; of the rows
};

// Its safetensors file, or the pickle that PEFT wrote before it wrote those.
fs::path weights_path(const fs::path& folder) {
  std::error_code error;
  const bool is_pickled = !fs::exists(folder / kWeights, error) && fs::exists(folder / kPickledWeights, error);
  return folder / (is_pickled ? kPickledWeights : kWeights);
}

std::vector<PeftTensor> peft_tensors(const ModelConfig& model) {
  hugging_face_format(model.kind).write(model, {});  // UserError: PEFT would have no such model beside the adapters
  std::vector<PeftTensor> tensors;
  for (const PlacedAdapter& adapter : placed_adapters(model)) {
    // B has a row for each output of the layer, in the order of a bias; the layer's matrix may be transposed besides.
    Parameter rows = adapter.weight;
    rows.name = rows.name.substr(0, rows.name.rfind('.')) + ".bias";
    rows.shape = {adapter.weight.shape[0]};
    if (rows.split.axis != 0) rows.split = {};
    const HuggingFaceTensors there = hugging_face_tensors(model, rows);
    const HuggingFaceTensor& layer = there.parts[there.parts.size() == 1 ? 0 : static_cast<std::size_t>(adapter.part)];
    const std::string module = "base_model.model." + layer.name.substr(0, layer.name.rfind('.'));
    tensors.push_back({adapter.a.name, module + ".lora_A.weight", stored_shape(adapter.a)});
    tensors.push_back({adapter.b.name, module + ".lora_B.weight", stored_shape(adapter.b), layer.transposed});
  }
  return tensors;
}

// Settings of PEFT that are read, or under which an adapter is the same function.
constexpr std::string_view kPlainSettings[] = {"auto_mapping",
                                               "base_model_name_or_path",
                                               "bias",
                                               "eva_config",
                                               "fan_in_fan_out",
                                               "inference_mode",
                                               "init_lora_weights",
                                               "lora_alpha",
                                               "lora_dropout",
                                               "megatron_core",
                                               "peft_type",
                                               "peft_version",
                                               "qalora_group_size",
                                               "r",
                                               "revision",
                                               "runtime_config",
                                               "target_modules",
                                               "task_type",
                                               "use_rslora"};

// Initialisations that leave the model beside the adapters as it was. Others, such as pissa and olora, change it.
bool leaves_base(const nlohmann::json& init) {
  return !init.is_string() || init == "gaussian" || init == "eva" || init == "orthogonal";
}

// Refuses settings under which an adapter is another function, also those that a later PEFT may have.
void require_plain(const JsonFields& fields, const nlohmann::json& json, const fs::path& path) {
  std::vector<std::string> other;
  if (fields.string("peft_type") != "LORA") other.push_back("peft_type " + fields.string("peft_type"));
  if (fields.has("bias") && fields.string("bias") != "none") other.push_back("bias " + fields.string("bias"));
  if (fields.has("init_lora_weights") && !leaves_base(fields["init_lora_weights"])) {
    other.push_back("init_lora_weights " + fields.string("init_lora_weights"));
  }
  for (const auto& [key, value] : json.items()) {
    const bool is_off =
        value.is_null() || value == 0 || value == false || value == "" || (value.is_structured() && value.empty());
    if (!is_off && std::ranges::find(kPlainSettings, key) == std::end(kPlainSettings)) other.push_back(key);
  }
  if (other.empty()) return;
  throw_user_error("'{}' has adapters that are none of ours: {}", path.string(), fmt::join(other, ", "));
}

// Names of layers in any module of the model, which PEFT lists one by one where it was asked for all of them. The
// weights tell whether a module is left out.
std::vector<std::string> layers_in(std::vector<std::string> modules) {
  for (std::string& name : modules) name.erase(0, name.rfind('.') + 1);
  std::ranges::sort(modules);
  modules.erase(std::unique(modules.begin(), modules.end()), modules.end());
  return modules;
}

AdapterConfig read_adapter_config(ModelConfig model, const fs::path& path) {
  const nlohmann::json json = parse_json_object(read_file(path), path);
  const JsonFields fields(json, path);
  require_plain(fields, json, path);
  AdapterConfig adapters{.rank = fields.integer("r", 1, kMostRank),
                         .alpha = fields.number("lora_alpha"),
                         .dropout = fields.has("lora_dropout") ? fields.number("lora_dropout") : 0,
                         .rank_stabilized = fields.has("use_rslora") && fields.boolean("use_rslora")};
  const nlohmann::json& targets = fields["target_modules"];
  std::vector<std::string> names;
  if (targets.is_string()) {
    names = {targets.get<std::string>()};
  } else if (targets.is_array() && std::ranges::all_of(targets, [](const auto& one) { return one.is_string(); })) {
    names = layers_in(targets.get<std::vector<std::string>>());
  } else {
    fields.throw_not("target_modules", "a list of names");
  }
  adapters.targets = adapter_targets(model, names);
  model.adapters = adapters;
  if (const std::vector<std::string> faults = model.faults().texts(); !faults.empty()) {
    throw_user_error("'{}': {}", path.string(), fmt::join(faults, "; "));
  }
  return adapters;
}

std::string adapter_config(const ModelConfig& model, const fs::path& base) {
  const AdapterConfig& adapters = model.adapters;
  const nlohmann::ordered_json json = {{"base_model_name_or_path", base.string()},
                                       {"bias", "none"},
                                       {"fan_in_fan_out", model.kind == ModelKind::kGpt2},
                                       {"inference_mode", true},
                                       {"lora_alpha", adapters.alpha},
                                       {"lora_dropout", adapters.dropout},
                                       {"peft_type", "LORA"},
                                       {"r", adapters.rank},
                                       {"target_modules", adapter_target_names(model)},
                                       {"task_type", "CAUSAL_LM"},
                                       {"use_rslora", adapters.rank_stabilized}};
  return json_text(json, 2) + "\n";
}

}  // namespace

void export_to_peft(const fs::path& adapters, const fs::path& folder) {
  const WeightSource source = find_weights(adapters);
  if (!source.model.adapters.active()) {
    throw_user_error("'{}' holds a whole model, and no adapters for PEFT", source.folder.string());
  }
  check_holds_no_checkpoint(folder);
  const std::unique_ptr<TensorSource> own = open_tensors_of(source.folder);
  std::map<std::string, std::size_t> numbers;
  for (std::size_t i = 0; i < own->tensors().size(); ++i) numbers[own->tensors()[i].name] = i;
  std::map<std::string, PeftTensor> tensors;
  for (const PeftTensor& tensor : peft_tensors(source.model)) {
    if (!numbers.contains(tensor.ours)) {
      throw_user_error("'{}' lacks the adapter '{}' of its model", source.folder.string(), tensor.ours);
    }
    tensors[tensor.theirs] = tensor;
  }
  std::vector<SafetensorsDeclaration> declarations;
  for (const auto& [name, tensor] : tensors) declarations.push_back({name, DType::kF32, tensor.shape});
  ExportFolder out(folder, {kWeights, kConfig});
  SafetensorsWriter file(folder / kWeights, declarations, {{"format", "pt"}});
  for (const auto& [name, tensor] : tensors) {
    const std::size_t number = numbers.at(tensor.ours);
    std::vector<std::byte> bytes;
    own->pass_on(number, converting_sink(*own->tensors()[number].dtype, DType::kF32, appending_sink(bytes)));
    const auto [rows, columns] = tensor.transposed;
    stream_transposed(bytes, columns, rows, [&](std::span<const std::byte> piece) { file.write(name, piece); });
  }
  file.commit();
  write_file_atomically(folder / kConfig, adapter_config(source.model, source.run.base.folder));  // last
  out.finish();
}

fs::path import_from_peft(const fs::path& folder, const fs::path& base, const fs::path& root) {
  check_takes_conversion(root, 0);
  const WeightSource source = find_weights(base);
  if (source.model.adapters.active()) {
    throw_user_error("'{}' holds adapters itself; name the whole model that those in '{}' are beside", base.string(),
                     folder.string());
  }
  ModelConfig model = source.model;
  model.adapters = read_adapter_config(model, folder / kConfig);
  const fs::path path = weights_path(folder);
  const std::unique_ptr<WeightsFile> file = open_weights_file(path);
  const std::vector<PeftTensor> tensors = peft_tensors(model);
  std::vector<ExpectedTensor> expected;
  for (const PeftTensor& tensor : tensors) expected.push_back({tensor.theirs, tensor.shape});
  const std::vector<std::string> faults = compare_tensors(file->tensors(), expected);
  if (!faults.empty()) {
    throw_user_error("'{}' does not hold adapters of the model in '{}': {}", path.string(), base.string(),
                     summary_of(faults));
  }
  std::map<std::string_view, const SafetensorsEntry*> entries;
  for (const SafetensorsEntry& entry : file->tensors()) entries[entry.name] = &entry;
  std::vector<SafetensorsDeclaration> declarations;
  for (const PeftTensor& tensor : tensors) {
    const SafetensorsEntry& entry = *entries.at(tensor.theirs);
    require_finite(file->bytes(entry), *entry.dtype, tensor.theirs, path);
    declarations.push_back({tensor.ours, DType::kF32, tensor.shape});
  }
  CheckpointWriter writer(root, {.kind = RunKind::kConversion, .task = {}, .base = adapter_base_of(base)}, model, {});
  writer.write_tensors(tensor_file_name(TensorKind::kModel), declarations, [&](std::size_t i, const ByteSink& sink) {
    const SafetensorsEntry& entry = *entries.at(tensors[i].theirs);
    const auto [rows, columns] = tensors[i].transposed;
    stream_transposed(file->bytes(entry), rows, columns, converting_sink(*entry.dtype, DType::kF32, sink));
  });
  for (const auto& [name, content] : find_tokenizer_files(source.folder)) writer.add_file(name, content);
  return writer.publish_as_only();
}

}  // namespace teratron

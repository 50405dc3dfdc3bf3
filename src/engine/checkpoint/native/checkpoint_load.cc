#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/integrity.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/finite_values.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tensor_parts.h"
#include "model/make_model.h"
#include "nn/parameter_state.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// One tensor on its way from a file.
struct Incoming {
  std::string name;
  const Parameter* parameter;
  TensorRef state;  // what this rank keeps of one of the optimizer's tensors; null: the weights
};

std::vector<Incoming> of_model(std::span<Parameter* const> parameters) {
  std::vector<Incoming> incoming;
  for (const Parameter* p : parameters) incoming.push_back({p->name, p, {}});
  return incoming;
}

std::vector<Incoming> of_optimizer(std::span<Parameter* const> parameters) {
  std::vector<Incoming> incoming;
  for (const Parameter* p : parameters) {
    for (const OptimizerSlot& slot : p->state.slots) incoming.push_back({p->name + "." + slot.name, p, slot.values});
  }
  return incoming;
}

std::vector<Parameter*> addresses_of(std::vector<Parameter>& parameters) {
  std::vector<Parameter*> addresses;
  for (Parameter& parameter : parameters) addresses.push_back(&parameter);
  return addresses;
}

void check_tensors(std::span<const SafetensorsEntry> there, const std::vector<Incoming>& incoming,
                   const fs::path& folder) {
  std::vector<ExpectedTensor> expected;
  for (const Incoming& tensor : incoming) expected.push_back({tensor.name, stored_shape(*tensor.parameter)});
  const std::vector<std::string> faults = compare_tensors(there, expected);
  if (!faults.empty()) throw_user_error("'{}' does not hold this model: {}", folder.string(), summary_of(faults));
}

// Slots of parameters that are not loaded are not checked: only a loaded parameter has the list of its slots.
void check_slots(const TensorFiles& files, std::span<Parameter* const> declared, std::span<Parameter* const> parameters,
                 const fs::path& folder) {
  std::set<std::string_view> left_out;
  for (const Parameter* parameter : declared) left_out.insert(parameter->name);
  for (const Parameter* parameter : parameters) left_out.erase(parameter->name);
  std::vector<SafetensorsEntry> there;
  for (const SafetensorsEntry& entry : files.entries()) {
    const std::string_view of = std::string_view(entry.name).substr(0, entry.name.rfind('.'));
    if (!left_out.contains(of)) there.push_back(entry);
  }
  check_tensors(there, of_optimizer(parameters), folder);
}

void load_tensors(const TensorFiles& files, const std::vector<Incoming>& incoming, LabelRows& labels, Backend& backend,
                  const fs::path& folder, bool verify) {
  for (const Incoming& tensor : incoming) {
    const TensorFiles::Location& from = files.at(tensor.name);
    if (verify) {
      from.verify();
      require_finite(from.bytes(), *from.entry->dtype, tensor.name, folder);
    }
    if (!is_held(*tensor.parameter)) continue;
    const FillTensor fill = [&](TensorRef part) {
      load_tensor_part(*tensor.parameter, part, backend, labels.ordered(*tensor.parameter, from.bytes()),
                       *from.entry->dtype);
    };
    tensor.state ? store_state(backend, *tensor.parameter, tensor.state, fill)
                 : store_weights(backend, *tensor.parameter, fill);
    from.release();
  }
}

// Compares files without tensors with their checksums, such as the tokenizer's.
void check_other_files(const fs::path& folder, const Manifest& manifest) {
  for (const auto& [name, record] : manifest.files) {
    if (is_tensor_file(name)) continue;
    check_other_file(folder / name, record);
  }
}

void require_files(const TensorFiles& model, const TensorFiles* optimizer, const fs::path& folder) {
  if (model.empty()) {
    throw DamagedCheckpoint(
        fmt::format("'{}' lists no {}", (folder / kManifestFile).string(), tensor_file_name(TensorKind::kModel)));
  }
  if (optimizer != nullptr && optimizer->empty()) {
    throw_user_error(
        "'{0}' holds weights without the optimizer's state (it was imported, or saved without): training cannot resume "
        "from it; it can be evaluated, sampled from, or start a new run: train --finetune {0}",
        folder.string());
  }
}

}  // namespace

TrainingState load_checkpoint(const fs::path& path, const ModelConfig& config, std::span<Parameter* const> parameters,
                              Backend& backend, const LoadOptions& options) {
  check(std::ranges::any_of(parameters, [](const Parameter* parameter) { return is_held(*parameter); }),
        "a rank that loads has memory for parameters");
  const fs::path folder = find_checkpoint(path);
  return with_advice(folder, [&] {
    const Manifest manifest = read_manifest(folder);
    check_same_model(folder, manifest.model, config);
    const TensorFiles model(folder, manifest, TensorKind::kModel, options.verify);
    std::optional<TensorFiles> optimizer;
    if (options.optimizer) optimizer.emplace(folder, manifest, TensorKind::kOptimizer, options.verify);
    require_files(model, optimizer ? &*optimizer : nullptr, folder);
    if (options.verify) check_other_files(folder, manifest);
    std::vector<Parameter> declared = declared_parameters(manifest.model);
    std::erase_if(declared, [](const Parameter& parameter) { return parameter.frozen; });
    std::vector<Parameter*> wanted(parameters.begin(), parameters.end());
    if (manifest.model.adapters.active())
      std::erase_if(wanted, [](const Parameter* parameter) { return parameter->frozen; });
    const std::vector<Parameter*> all = addresses_of(declared);
    check_tensors(model.entries(), of_model(all), folder);
    if (optimizer) check_slots(*optimizer, all, wanted, folder);
    LabelRows labels(manifest.model, config);
    load_tensors(model, of_model(wanted), labels, backend, folder, options.verify);
    if (optimizer) load_tensors(*optimizer, of_optimizer(wanted), labels, backend, folder, options.verify);
    return manifest.state;
  });
}

}  // namespace teratron

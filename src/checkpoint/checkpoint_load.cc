#include <fmt/ranges.h>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "checkpoint/integrity.h"
#include "checkpoint/manifest.h"
#include "checkpoint/model_config_json.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_list.h"
#include "checkpoint/tensor_parts.h"
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
    incoming.push_back({p->name + ".moment1", p, p->state.moment1});
    incoming.push_back({p->name + ".moment2", p, p->state.moment2});
  }
  return incoming;
}

void check_tensors(const SafetensorsFile& file, const std::vector<Incoming>& incoming) {
  std::vector<ExpectedTensor> expected;
  for (const Incoming& tensor : incoming) expected.push_back({tensor.name, stored_shape(*tensor.parameter)});
  const std::vector<std::string> faults = compare_tensors(file.tensors(), expected);
  if (!faults.empty()) {
    throw_user_error("'{}' does not hold this model: {}", file.path().string(), summary_of(faults));
  }
}

void load_file(const fs::path& path, const FileRecord& record, const std::vector<Incoming>& incoming, Backend& backend,
               bool verify) {
  const SafetensorsFile file = open_tensors(path, record, verify);
  check_tensors(file, incoming);
  for (const Incoming& tensor : incoming) {
    const SafetensorsEntry& entry = *file.find(tensor.name);
    if (verify) check_tensor(file, entry, record);
    const FillTensor fill = [&](TensorRef part) {
      load_tensor_part(*tensor.parameter, part, backend, file.bytes(entry), *entry.dtype);
    };
    tensor.state ? store_state(backend, *tensor.parameter, tensor.state, fill)
                 : store_weights(backend, *tensor.parameter, fill);
    file.release(entry);
  }
}

// Files that others read from the folder, such as the tokenizer's.
void check_other_files(const fs::path& folder, const Manifest& manifest) {
  for (const auto& [name, record] : manifest.files) {
    if (name == kModelFile || name == kOptimizerFile) continue;
    const std::vector<std::string> faults = faults_of_file(folder / name, record);
    if (!faults.empty()) throw DamagedCheckpoint(faults.front());
  }
}

void check_same_model(const fs::path& folder, const ModelConfig& stored, const ModelConfig& asked) {
  const std::vector<std::string> found = differences(stored, asked);
  if (!found.empty()) throw_user_error("'{}' holds another model: {}", folder.string(), fmt::join(found, "; "));
}

const FileRecord& record_of(const Manifest& manifest, std::string_view name, const fs::path& folder) {
  const auto record = manifest.files.find(std::string(name));
  if (record != manifest.files.end()) return record->second;
  if (name == kOptimizerFile) {
    throw_user_error(
        "'{}' holds weights without the optimizer's state (it was imported, or saved without): training cannot resume "
        "from it; it can be evaluated, sampled from, or start a new run",
        folder.string());
  }
  throw DamagedCheckpoint(fmt::format("'{}' lists no {}", (folder / kManifestFile).string(), name));
}

}  // namespace

TrainingState load_checkpoint(const fs::path& path, const ModelConfig& config, std::span<Parameter* const> parameters,
                              Backend& backend, const LoadOptions& options) {
  const fs::path folder = find_checkpoint(path);
  return with_advice(folder, [&] {
    const Manifest manifest = read_manifest(folder);
    check_same_model(folder, manifest.model, config);
    const FileRecord& model = record_of(manifest, kModelFile, folder);
    const FileRecord* optimizer = options.optimizer ? &record_of(manifest, kOptimizerFile, folder) : nullptr;
    if (options.verify) check_other_files(folder, manifest);
    load_file(folder / kModelFile, model, of_model(parameters), backend, options.verify);
    if (optimizer != nullptr) {
      load_file(folder / kOptimizerFile, *optimizer, of_optimizer(parameters), backend, options.verify);
    }
    return manifest.state;
  });
}

}  // namespace teratron

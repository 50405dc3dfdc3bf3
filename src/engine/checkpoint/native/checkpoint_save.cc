#include <algorithm>

#include "base/error.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/checkpoint_writer.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tensor_parts.h"
#include "checkpoint/tokenizer_files.h"
#include "nn/parameter_state.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// One tensor on its way to a file.
struct Outgoing {
  SafetensorsDeclaration declaration;
  const Parameter* parameter;
  TensorRef state;  // what this rank keeps of one of the optimizer's tensors; null: the weights
};

struct OutgoingFiles {
  std::vector<Outgoing> model, optimizer;
};

// Any parameter held here: all parameters of a model have the same types.
const Parameter& any_held(std::span<Parameter* const> parameters) {
  const auto held = std::ranges::find_if(parameters, [](const Parameter* parameter) { return is_held(*parameter); });
  check(held != parameters.end(), "a rank that saves holds parameters");
  return **held;
}

OutgoingFiles outgoing_files(std::span<Parameter* const> parameters, bool with_optimizer) {
  OutgoingFiles files;
  const DType weights = weights_dtype(any_held(parameters));
  for (const Parameter* parameter : parameters) {
    const auto declared = [&](const std::string& suffix, DType dtype) {
      return SafetensorsDeclaration{parameter->name + suffix, dtype, stored_shape(*parameter)};
    };
    files.model.push_back({declared("", weights), parameter, {}});
    if (!with_optimizer) continue;
    for (const OptimizerSlot& slot : parameter->state.slots) {
      check(!is_held(*parameter) || slot.values, "a slot that is saved has memory");
      files.optimizer.push_back({declared("." + slot.name, slot.dtype), parameter, slot.values});
    }
  }
  return files;
}

// Sends a parameter on the stage that saves it over the data-parallel ranks to the first copy of the model, then over
// the tensor-parallel ranks to the first of them, and from there over the stages to the first rank.
class Collector {
 public:
  Collector(Backend& backend, const Mesh& mesh) : backend_(backend), mesh_(mesh) {}

  bool writes() const { return mesh_.data->rank() == 0 && mesh_.model->rank() == 0; }

  void collect(const Outgoing& tensor, const ByteSink& sink) const {
    const Parameter& parameter = *tensor.parameter;
    const DType dtype = tensor.declaration.dtype;
    if (parameter.stage == mesh_.pipeline->rank()) {
      const bool passes_on = parameter.stage > 0 && mesh_.tensor->rank() == 0 && mesh_.data->rank() == 0;
      gather(tensor, passes_on ? sending_pieces(parameter, dtype, backend_, *mesh_.pipeline) : sink);
    } else if (writes()) {
      receive_pieces(parameter, dtype, backend_, *mesh_.pipeline, sink);
    }
  }

  // The part of the ranks that do not write.
  void send(const OutgoingFiles& files) const {
    for (const std::vector<Outgoing>* file : {&files.model, &files.optimizer}) {
      for (const Outgoing& tensor : *file) collect(tensor, {});
    }
  }

  // Result of the rank that writes, on all ranks.
  std::string verdict(const std::string& of_writer) const {
    const std::string of_model = mesh_.model->all_gather_host(of_writer).front();
    return mesh_.data->all_gather_host(of_model).front();
  }

  void wait_for_all() const {
    mesh_.model->barrier();
    mesh_.data->barrier();
  }

 private:
  void gather(const Outgoing& tensor, const ByteSink& sink) const {
    const Parameter& parameter = *tensor.parameter;
    const TensorRef part = tensor.state ? whole_state(backend_, parameter, tensor.state, *mesh_.data)
                                        : whole_weights(backend_, parameter, *mesh_.data);
    if (mesh_.data->rank() == 0) gather_tensor(parameter, part, backend_, *mesh_.tensor, sink);
  }

  Backend& backend_;
  const Mesh& mesh_;
};

void write(CheckpointWriter& writer, std::string_view file_name, const std::vector<Outgoing>& outgoing,
           const Collector& collector) {
  std::vector<SafetensorsDeclaration> declarations;
  for (const Outgoing& tensor : outgoing) declarations.push_back(tensor.declaration);
  writer.write_tensors(file_name, declarations,
                       [&](std::size_t i, const ByteSink& sink) { collector.collect(outgoing[i], sink); });
}

// Checkpoints after `iteration` are another run's future; they are not counted and not touched.
void prune(const fs::path& root, std::int64_t iteration, const SaveOptions& options) {
  std::vector<std::int64_t> earlier = iterations_in(root);
  std::erase_if(earlier, [&](std::int64_t there) { return there >= iteration; });
  const auto is_kept = [&](std::int64_t there) {
    const fs::path folder = iteration_folder(root, there);
    std::error_code error;
    // Later saves copy the tokenizer from there.
    return fs::equivalent(folder, root / kBestLink, error) || fs::equivalent(folder, options.tokenizer, error);
  };
  if (options.replaces && std::erase(earlier, *options.replaces) > 0 && !is_kept(*options.replaces)) {
    remove_checkpoint(iteration_folder(root, *options.replaces));
  }
  if (options.keep_last == 0) return;
  const auto excess = static_cast<std::int64_t>(earlier.size()) + 1 - options.keep_last;
  for (std::int64_t i = 0; i < excess; ++i) {
    const std::int64_t there = earlier[static_cast<std::size_t>(i)];
    if (!is_kept(there)) remove_checkpoint(iteration_folder(root, there));
  }
}

}  // namespace

fs::path save_checkpoint(const fs::path& root, const ModelConfig& config, std::span<Parameter* const> parameters,
                         Backend& backend, const TrainingState& state, const SaveOptions& options, const Mesh* mesh) {
  const Mesh alone = make_single_rank_mesh();
  const Collector collector(backend, mesh != nullptr ? *mesh : alone);
  const OutgoingFiles files = outgoing_files(parameters, options.optimizer);
  if (!collector.writes()) {
    collector.send(files);
    if (const std::string found = collector.verdict(""); !found.empty()) throw_not_finite(found, state.iteration);
    collector.wait_for_all();
    return iteration_folder(root, state.iteration);
  }
  FileContents tokenizer;
  if (!options.tokenizer.empty()) tokenizer = read_tokenizer_files(options.tokenizer);
  CheckpointWriter writer(root, options.run, config, state);
  write(writer, tensor_file_name(TensorKind::kModel), files.model, collector);
  if (options.optimizer) write(writer, tensor_file_name(TensorKind::kOptimizer), files.optimizer, collector);
  for (const auto& [name, content] : tokenizer) writer.write_file(name, content);
  if (!options.settings.empty()) writer.write_file(std::string(kSettingsFile), options.settings);
  collector.verdict(writer.not_finite());
  const fs::path folder = writer.publish();
  if (options.best) link_best(root, state.iteration);
  prune(root, state.iteration, options);
  collector.wait_for_all();
  return folder;
}

}  // namespace teratron

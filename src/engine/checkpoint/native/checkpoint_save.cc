#include <algorithm>

#include "base/error.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/checkpoint_writer.h"
#include "checkpoint/native/copied_checkpoint.h"
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

// Refuses the checkpoint after `iteration` updates, of which `tensor` has a value that is not finite.
[[noreturn]] void throw_not_finite(const std::string& tensor, std::int64_t iteration) {
  throw_user_error(
      "'{}' holds values that are infinite or not a number after {} updates; no checkpoint was written, and those that "
      "stand are as they were. Training has diverged: lower --lr, lengthen --lr-warmup-iters or set --clip-grad, and "
      "go on from the last checkpoint",
      tensor, iteration);
}

// Any trained parameter held here: all of a model have the same types.
const Parameter& any_held(std::span<Parameter* const> parameters) {
  const auto held = std::ranges::find_if(
      parameters, [](const Parameter* parameter) { return is_held(*parameter) && !parameter->frozen; });
  check(held != parameters.end(), "a rank that saves holds parameters");
  return **held;
}

// `weights`: the type that they are saved in.
OutgoingFiles outgoing_files(std::span<Parameter* const> parameters, DType weights, bool with_optimizer) {
  OutgoingFiles files;
  for (const Parameter* parameter : parameters) {
    if (parameter->frozen) continue;
    const auto declared = [&](const std::string& suffix, DType dtype) {
      return SafetensorsDeclaration{parameter->name + suffix, dtype, stored_shape(*parameter)};
    };
    files.model.push_back({declared("", weights), parameter, {}});
    if (!with_optimizer) continue;
    for (const OptimizerSlot& slot : parameter->state.slots) {
      files.optimizer.push_back({declared("." + slot.name, slot.dtype), parameter, slot.values});
    }
  }
  return files;
}

// Collects parameters on the first rank of the mesh. On the stage that saves a parameter, the data-parallel ranks send
// their shards to the first copy of the model, then the tensor-parallel ranks their parts to the first of them, which
// sends the whole to the first stage.
class Collector {
 public:
  Collector(Backend& backend, const Mesh& mesh) : backend_(backend), mesh_(mesh) {}

  void collect(const Outgoing& tensor, const ByteSink& sink) const {
    const Parameter& parameter = *tensor.parameter;
    const DType dtype = tensor.declaration.dtype;
    if (parameter.over_stages) return gather(tensor, sink);
    if (parameter.stage == mesh_.pipeline->rank()) {
      const bool passes_on = parameter.stage > 0 && mesh_.tensor->rank() == 0 && mesh_.data->rank() == 0;
      gather(tensor, passes_on ? sending_pieces(parameter, dtype, backend_, *mesh_.pipeline) : sink);
    } else if (writes_checkpoints(mesh_.coordinates())) {
      receive_pieces(parameter, dtype, backend_, *mesh_.pipeline, sink);
    }
  }

  // On the rank that writes: the bytes where they lie and stay until the next update, or in `room`.
  std::span<const std::byte> locate(const Outgoing& tensor, std::span<std::byte> room) const {
    const Parameter& parameter = *tensor.parameter;
    if (parameter.stage == mesh_.pipeline->rank()) {
      const TensorRef part = whole_part(tensor);
      const bool is_whole = lies_whole(parameter) && backend_.is_host_memory() && stays(parameter, part);
      if (is_whole) return {static_cast<const std::byte*>(part.data), room.size()};  // rows that pad it come last
      gather_tensor(parameter, part, backend_, group_of(parameter, mesh_), room);
      return room;
    }
    std::span<std::byte> rest = room;
    receive_pieces(parameter, tensor.declaration.dtype, backend_, *mesh_.pipeline,
                   [&](std::span<const std::byte> piece) {
                     std::ranges::copy(piece, rest.begin());
                     rest = rest.subspan(piece.size());
                   });
    return room;
  }

  // Sends what the rank that writes collects from this one.
  void send(const OutgoingFiles& files) const {
    for (const std::vector<Outgoing>* file : {&files.model, &files.optimizer}) {
      for (const Outgoing& tensor : *file) collect(tensor, ByteSink());
    }
  }

  // Result of the rank that writes, on all ranks.
  std::string verdict(const std::string& of_writer) const {
    const std::string of_model = mesh_.model->all_gather_host(of_writer).front();
    return mesh_.data->all_gather_host(of_model).front();
  }

 private:
  void gather(const Outgoing& tensor, const ByteSink& sink) const {
    const TensorRef part = whole_part(tensor);
    if (mesh_.data->rank() == 0)
      gather_tensor(*tensor.parameter, part, backend_, group_of(*tensor.parameter, mesh_), sink);
  }

  // This rank's tensor-parallel part, on the first copy of the model.
  TensorRef whole_part(const Outgoing& tensor) const {
    return tensor.state ? whole_state(backend_, *tensor.parameter, tensor.state, *mesh_.data)
                        : whole_weights(backend_, *tensor.parameter, *mesh_.data);
  }

  Backend& backend_;
  const Mesh& mesh_;
};

std::vector<SafetensorsDeclaration> declarations_of(const std::vector<Outgoing>& outgoing) {
  std::vector<SafetensorsDeclaration> declarations;
  for (const Outgoing& tensor : outgoing) declarations.push_back(tensor.declaration);
  return declarations;
}

void write_file(CheckpointWriter& writer, TensorKind kind, const std::vector<Outgoing>& outgoing,
                const Collector& collector) {
  writer.write_tensors(tensor_file_name(kind), declarations_of(outgoing),
                       [&](std::size_t i, const ByteSink& sink) { collector.collect(outgoing[i], sink); });
}

void copy_file(CheckpointWriter& writer, TensorKind kind, const std::vector<Outgoing>& outgoing,
               const Collector& collector, Backend& backend) {
  const OpenMemory opened(&backend);  // threads read tensors without calling the back end
  writer.copy_tensors(tensor_file_name(kind), declarations_of(outgoing),
                      [&](std::size_t i, std::span<std::byte> room) { return collector.locate(outgoing[i], room); });
}

}  // namespace

bool writes_checkpoints(const RankCoordinates& place) {
  return place.data.rank == 0 && place.pipeline.rank == 0 && place.tensor.rank == 0;
}

std::int64_t bytes_of_copied_checkpoint(std::span<Parameter* const> parameters, DType compute_dtype) {
  const DType weights = master_dtype_of(compute_dtype) ? accumulation_dtype_of(compute_dtype) : compute_dtype;
  const OutgoingFiles files = outgoing_files(parameters, weights, /*with_optimizer=*/true);
  return static_cast<std::int64_t>(CheckpointWriter::bytes_of_copy(declarations_of(files.model)) +
                                   CheckpointWriter::bytes_of_copy(declarations_of(files.optimizer)));
}

std::unique_ptr<CopiedCheckpoint> copy_checkpoint(const fs::path& root, const ModelConfig& config,
                                                  std::span<Parameter* const> parameters, Backend& backend,
                                                  const TrainingState& state, const SaveOptions& options,
                                                  const Mesh& mesh, std::span<std::byte> copy_to) {
  const Collector collector(backend, mesh);
  const OutgoingFiles files = outgoing_files(parameters, weights_dtype(any_held(parameters)), options.optimizer);
  const auto has_memory = [](const Outgoing& slot) { return !is_held(*slot.parameter) || slot.state; };
  check(std::ranges::all_of(files.optimizer, has_memory), "a slot that is saved has memory");
  if (!writes_checkpoints(mesh.coordinates())) {
    collector.send(files);
    if (const std::string found = collector.verdict(""); !found.empty()) throw_not_finite(found, state.iteration);
    return nullptr;
  }
  FileContents tokenizer;
  if (!options.tokenizer.empty()) tokenizer = read_tokenizer_files(options.tokenizer);
  auto copy = std::make_unique<CopiedCheckpoint>(root, config, state, options, copy_to);
  CheckpointWriter& writer = copy->writer();
  const auto save = [&](TensorKind kind, const std::vector<Outgoing>& outgoing) {
    copy_to.empty() ? write_file(writer, kind, outgoing, collector)
                    : copy_file(writer, kind, outgoing, collector, backend);
  };
  save(TensorKind::kModel, files.model);
  if (options.optimizer) save(TensorKind::kOptimizer, files.optimizer);
  for (const auto& [name, content] : tokenizer) writer.add_file(name, content);
  if (!options.settings.empty()) writer.add_file(std::string(kSettingsFile), options.settings);
  collector.verdict(writer.not_finite());
  if (!writer.not_finite().empty()) throw_not_finite(writer.not_finite(), state.iteration);
  return copy;
}

fs::path save_checkpoint(const fs::path& root, const ModelConfig& config, std::span<Parameter* const> parameters,
                         Backend& backend, const TrainingState& state, const SaveOptions& options, const Mesh* mesh) {
  const Mesh alone = make_single_rank_mesh();
  const Mesh& all = mesh != nullptr ? *mesh : alone;
  const std::unique_ptr<CopiedCheckpoint> copy =
      copy_checkpoint(root, config, parameters, backend, state, options, all);
  const fs::path folder = copy ? copy->publish() : iteration_folder(root, state.iteration);
  all.model->barrier();
  all.data->barrier();
  return folder;
}

}  // namespace teratron

#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/folders.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_parts.h"
#include "checkpoint/tokenizer_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// One tensor on its way to a file.
struct Outgoing {
  SafetensorsDeclaration declaration;
  const Parameter* parameter;
  TensorRef part;  // on this rank
};

struct OutgoingFiles {
  std::vector<Outgoing> model, optimizer;
};

OutgoingFiles outgoing_files(std::span<Parameter* const> parameters, bool with_optimizer) {
  OutgoingFiles files;
  const auto add = [](std::vector<Outgoing>& file, const Parameter& parameter, const TensorRef& part,
                      std::string_view suffix) {
    check(static_cast<bool>(part), "a tensor that is saved has memory");
    file.push_back({.declaration = {parameter.name + std::string(suffix), part.dtype, stored_shape(parameter)},
                    .parameter = &parameter,
                    .part = part});
  };
  for (const Parameter* parameter : parameters) {
    add(files.model, *parameter, parameter->value, "");
    if (!with_optimizer) continue;
    add(files.optimizer, *parameter, parameter->moment1, ".moment1");
    add(files.optimizer, *parameter, parameter->moment2, ".moment2");
  }
  return files;
}

void write(CheckpointWriter& writer, std::string_view file_name, const std::vector<Outgoing>& outgoing,
           Backend& backend, Communicator& group) {
  std::vector<SafetensorsDeclaration> declarations;
  for (const Outgoing& tensor : outgoing) declarations.push_back(tensor.declaration);
  writer.write_tensors(file_name, declarations, [&](std::size_t i, const ByteSink& sink) {
    gather_tensor(*outgoing[i].parameter, outgoing[i].part, backend, group, sink);
  });
}

// The part of the ranks that do not write.
void send(const OutgoingFiles& files, Backend& backend, Communicator& group) {
  for (const std::vector<Outgoing>* file : {&files.model, &files.optimizer}) {
    for (const Outgoing& tensor : *file) gather_tensor(*tensor.parameter, tensor.part, backend, group, {});
  }
}

// Checkpoints after `state.iteration` are another run's future; they are not counted and not touched.
void prune(const fs::path& root, std::int64_t iteration, const SaveOptions& options) {
  std::vector<std::int64_t> iterations = iterations_in(root);
  std::erase_if(iterations, [&](std::int64_t there) { return there > iteration; });
  const auto excess = static_cast<std::int64_t>(iterations.size()) - options.keep_last;
  for (std::int64_t i = 0; i < excess; ++i) {
    const fs::path folder = iteration_folder(root, iterations[static_cast<std::size_t>(i)]);
    std::error_code error;
    if (!fs::equivalent(folder, options.tokenizer, error)) remove_checkpoint(folder);  // later saves copy from there
  }
}

}  // namespace

fs::path save_checkpoint(const fs::path& root, const ModelConfig& config, std::span<Parameter* const> parameters,
                         Backend& backend, const TrainingState& state, const SaveOptions& options,
                         Communicator* tensor_group) {
  const std::unique_ptr<Communicator> alone = make_self_communicator();
  Communicator& group = tensor_group != nullptr ? *tensor_group : *alone;
  const OutgoingFiles files = outgoing_files(parameters, options.optimizer);
  if (group.rank() != 0) {
    send(files, backend, group);
    group.barrier();  // the checkpoint stands when this returns, on every rank
    return iteration_folder(root, state.iteration);
  }
  FileContents tokenizer;
  if (!options.tokenizer.empty()) tokenizer = read_tokenizer_files(options.tokenizer);
  CheckpointWriter writer(root, config, state);
  write(writer, kModelFile, files.model, backend, group);
  if (options.optimizer) write(writer, kOptimizerFile, files.optimizer, backend, group);
  for (const auto& [name, content] : tokenizer) writer.write_file(name, content);
  const fs::path folder = writer.publish();
  if (options.keep_last > 0) prune(root, state.iteration, options);
  group.barrier();
  return folder;
}

}  // namespace teratron

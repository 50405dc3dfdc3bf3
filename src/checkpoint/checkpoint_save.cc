#include <algorithm>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/checkpoint_writer.h"
#include "checkpoint/folders.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tokenizer_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// One tensor on its way to a file.
struct Outgoing {
  SafetensorsDeclaration declaration;
  TensorRef values;  // [stored values], flat
};

void add(std::vector<Outgoing>& outgoing, const Parameter& parameter, const TensorRef& view, std::string_view suffix) {
  check(static_cast<bool>(view), "a tensor that is saved has memory");
  outgoing.push_back({.declaration = {parameter.name + std::string(suffix), view.dtype, stored_shape(parameter)},
                      .values = view.reshape({view.elements()}).slice(0, 0, stored_values(parameter))});
}

void download(Backend& backend, const TensorRef& values, std::vector<std::byte>& piece, const ByteSink& sink) {
  const std::int64_t step = static_cast<std::int64_t>(kPieceBytes) / size_of(values.dtype);
  for (std::int64_t begin = 0; begin < values.elements(); begin += step) {
    const TensorRef part = values.slice(0, begin, std::min(begin + step, values.elements()));
    piece.resize(static_cast<std::size_t>(part.bytes()));
    backend.download(piece.data(), part);
    sink(piece);
  }
}

void write(CheckpointWriter& writer, std::string_view file_name, const std::vector<Outgoing>& outgoing,
           Backend& backend) {
  std::vector<SafetensorsDeclaration> declarations;
  for (const Outgoing& tensor : outgoing) declarations.push_back(tensor.declaration);
  std::vector<std::byte> piece;
  writer.write_tensors(file_name, declarations, [&](std::size_t i, const ByteSink& sink) {
    download(backend, outgoing[i].values, piece, sink);
  });
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
                         Backend& backend, const TrainingState& state, const SaveOptions& options) {
  FileContents tokenizer;
  if (!options.tokenizer.empty()) tokenizer = read_tokenizer_files(options.tokenizer);

  CheckpointWriter writer(root, config, state);
  std::vector<Outgoing> model, optimizer;
  for (const Parameter* parameter : parameters) {
    add(model, *parameter, parameter->value, "");
    if (!options.optimizer) continue;
    add(optimizer, *parameter, parameter->moment1, ".moment1");
    add(optimizer, *parameter, parameter->moment2, ".moment2");
  }
  write(writer, kModelFile, model, backend);
  if (options.optimizer) write(writer, kOptimizerFile, optimizer, backend);
  for (const auto& [name, content] : tokenizer) writer.write_file(name, content);
  const fs::path folder = writer.publish();
  if (options.keep_last > 0) prune(root, state.iteration, options);
  return folder;
}

}  // namespace teratron

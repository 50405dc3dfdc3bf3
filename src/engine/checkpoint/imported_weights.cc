#include "checkpoint/imported_weights.h"

#include "checkpoint/native/checkpoint_writer.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"

namespace teratron {
namespace {

// The type of all weights of the checkpoint, which holds every value exactly.
DType common_dtype(const ImportedWeights& weights) {
  for (std::size_t i = 0; i < weights.parameters.size(); ++i) {
    if (weights.dtype_of(i) == DType::kF64) return DType::kF64;
  }
  return DType::kF32;
}

}  // namespace

std::filesystem::path write_import(const ImportedWeights& weights, const FileContents& tokenizer,
                                   const std::filesystem::path& root) {
  check_takes_conversion(root, 0);
  CheckpointWriter writer(root, {.kind = RunKind::kConversion, .task = {}}, weights.model, {});
  const DType dtype = common_dtype(weights);
  std::vector<SafetensorsDeclaration> declarations;
  for (const Parameter& parameter : weights.parameters) {
    declarations.push_back({parameter.name, dtype, stored_shape(parameter)});
  }
  writer.write_tensors(tensor_file_name(TensorKind::kModel), declarations, [&](std::size_t i, const ByteSink& sink) {
    weights.pass_on(i, converting_sink(weights.dtype_of(i), dtype, sink));
  });
  for (const auto& [name, content] : tokenizer) writer.add_file(name, content);
  return writer.publish_as_only();
}

}  // namespace teratron

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/hugging_face/export_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/integrity.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/finite_values.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/tensor_stream.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tokenizer_files.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// Damage must not be copied into files that have no checksums.
void check_intact(const fs::path& checkpoint, const Manifest& manifest) {
  for (const auto& [name, record] : manifest.files) {
    if (is_tensor_file(name, TensorKind::kOptimizer)) continue;
    const std::vector<std::string> faults = faults_of_file(checkpoint / name, record);
    if (!faults.empty()) throw DamagedCheckpoint(summary_of(faults));
  }
}

std::vector<Parameter> parameters_in(const TensorFiles& weights, const ModelConfig& config, const fs::path& folder) {
  if (static_cast<std::size_t>(config.num_layers) > weights.entries().size()) {
    throw_user_error("'{}' has fewer tensors than its model has layers", folder.string());
  }
  std::vector<Parameter> parameters = declared_parameters(config);
  std::vector<ExpectedTensor> expected;
  for (const Parameter& parameter : parameters) expected.push_back({parameter.name, stored_shape(parameter)});
  const std::vector<std::string> faults = compare_tensors(weights.entries(), expected);
  if (!faults.empty()) {
    throw_user_error("'{}' does not hold its model: {}", folder.string(), summary_of(faults));
  }
  return parameters;
}

// The `part`th of so many equal shares of a tensor's rows, passed on as Hugging Face's files have it.
void pass_on_part(const TensorFiles::Location& from, const HuggingFaceTensor& there, std::size_t part,
                  std::size_t parts, const ByteSink& sink) {
  const std::span<const std::byte> all = from.bytes();
  const std::size_t bytes = all.size() / parts;
  const std::span<const std::byte> here = all.subspan(part * bytes, bytes);
  const auto [rows, columns] = there.transposed;
  stream_transposed(here, columns, rows, sink);
}

void write_weights(const fs::path& path, const TensorFiles& weights, const ModelConfig& model,
                   std::span<const Parameter> parameters, DType dtype) {
  // A body alone is stored without the prefix that it has beside a head.
  const std::size_t prefix =
      model.head == ModelHead::kNone ? hugging_face_mapping(model.kind).prefix.size() : std::size_t{0};
  std::vector<HuggingFaceTensors> there;
  std::vector<SafetensorsDeclaration> declarations;
  for (const Parameter& parameter : parameters) {
    there.push_back(hugging_face_tensors(model, parameter));
    for (HuggingFaceTensor& tensor : there.back().parts) {
      tensor.name.erase(0, prefix);
      declarations.push_back({tensor.name, dtype, tensor.shape});
    }
  }
  SafetensorsWriter file(path, declarations, {{"format", "pt"}});  // without it from_pretrained refuses the file
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const TensorFiles::Location& from = weights.at(parameters[i].name);
    const std::vector<HuggingFaceTensor>& parts = there[i].parts;
    for (std::size_t part = 0; part < parts.size(); ++part) {
      const auto write = [&](std::span<const std::byte> bytes) { file.write(parts[part].name, bytes); };
      pass_on_part(from, parts[part], part, parts.size(), converting_sink(*from.entry->dtype, dtype, write));
    }
    from.release();
  }
  file.commit();
}

}  // namespace

void export_to_hugging_face(const fs::path& checkpoint, const fs::path& folder) {
  const fs::path source = find_checkpoint(checkpoint);
  check_holds_no_checkpoint(folder);
  constexpr const char* kWeights = "model.safetensors";
  constexpr const char* kConfig = "config.json";
  const FileContents tokenizer = find_tokenizer_files(source);
  std::vector<std::string> files = {kWeights, kConfig};
  for (const auto& [name, content] : tokenizer) files.push_back(name);
  ExportFolder out(folder, files);  // before the long look at the checkpoint
  const Manifest manifest = with_advice(source, [&] {
    Manifest read = read_manifest(source);
    check_intact(source, read);
    return read;
  });
  const TensorFiles weights(source, manifest, TensorKind::kModel, /*verify=*/false);
  const std::vector<Parameter> parameters = parameters_in(weights, manifest.model, source);
  for (const Parameter& parameter : parameters) {
    const TensorFiles::Location& from = weights.at(parameter.name);
    require_finite(from.bytes(), *from.entry->dtype, parameter.name, source);
    from.release();
  }
  const DType dtype = *weights.at(parameters.front().name).entry->dtype;
  const std::string config = hugging_face_config(manifest.model, dtype, tokenizer);

  for (const auto& [name, content] : tokenizer) write_file_atomically(folder / name, content);
  write_weights(folder / kWeights, weights, manifest.model, parameters, dtype);
  write_file_atomically(folder / kConfig, config);  // last: without it the folder is no model
  out.finish();
}

}  // namespace teratron

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/folders.h"
#include "checkpoint/hugging_face/gpt2_config.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/integrity.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/stored_tensor.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tensor_list.h"
#include "checkpoint/tensor_stream.h"
#include "checkpoint/tokenizer_files.h"
#include "model/make_model.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kGpt2Vocabulary = 50257, kGpt2EndOfText = 50256;

// Damage must not travel on under checksums that nobody keeps.
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
  std::vector<Parameter> parameters;
  std::vector<ExpectedTensor> expected;
  make_model(config)->visit([&](Parameter& parameter) {
    parameters.push_back(parameter);
    expected.push_back({parameter.name, stored_shape(parameter)});
  });
  const std::vector<std::string> faults = compare_tensors(weights.entries(), expected);
  if (!faults.empty()) {
    throw_user_error("'{}' does not hold its model: {}", folder.string(), summary_of(faults));
  }
  return parameters;
}

void write_weights(const fs::path& path, const TensorFiles& weights, ModelKind kind,
                   std::span<const Parameter> parameters, DType dtype) {
  std::vector<HuggingFaceTensor> there;
  std::vector<SafetensorsDeclaration> declarations;
  for (const Parameter& parameter : parameters) {
    there.push_back(hugging_face_tensor(kind, parameter));
    declarations.push_back({there.back().name, dtype, there.back().shape});
  }
  SafetensorsWriter file(path, declarations, {{"format", "pt"}});  // without it from_pretrained refuses the file
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const TensorFiles::Location& from = weights.at(parameters[i].name);
    const DType stored = *from.entry->dtype;
    const ByteSink sink =
        converting_sink(stored, dtype, [&](std::span<const std::byte> bytes) { file.write(there[i].name, bytes); });
    if (there[i].transposed) {
      stream_transposed(from.bytes(), from.entry->shape[0], from.entry->shape[1], size_of(stored), sink);
    } else {
      stream(from.bytes(), sink);
    }
    from.release();
  }
  file.commit();
}

// What lies there may be another's model, with a tokenizer that would be mixed with ours.
void check_is_empty(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error || entries == fs::directory_iterator()) return;  // making the folder tells what is wrong with it
  throw_user_error("'{}' is not empty, it holds '{}'; nothing is overwritten, name a new folder", folder.string(),
                   entries->path().filename().string());
}

}  // namespace

void export_to_hugging_face(const fs::path& checkpoint, const fs::path& folder) {
  const fs::path source = find_checkpoint(checkpoint);
  check_holds_no_checkpoint(folder);
  check_is_empty(folder);
  const Manifest manifest = with_advice(source, [&] {
    Manifest read = read_manifest(source);
    check_intact(source, read);
    return read;
  });
  const TensorFiles weights(source, manifest, TensorKind::kModel, /*verify=*/false);
  const std::vector<Parameter> parameters = parameters_in(weights, manifest.model, source);
  const DType dtype = *weights.at(parameters.front().name).entry->dtype;
  const FileContents tokenizer = find_tokenizer_files(source);
  std::optional<std::int64_t> end_of_text = end_of_text_id(tokenizer);
  if (tokenizer.empty() && manifest.model.vocab_size == kGpt2Vocabulary) end_of_text = kGpt2EndOfText;

  make_folders(folder);
  for (const auto& [name, content] : tokenizer) write_file_atomically(folder / name, content);
  write_weights(folder / "model.safetensors", weights, manifest.model.kind, parameters, dtype);
  write_file_atomically(folder / "config.json", hugging_face_config(manifest.model, dtype, end_of_text));
  sync_folder(folder);
}

}  // namespace teratron

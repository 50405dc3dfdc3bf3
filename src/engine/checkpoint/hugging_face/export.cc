#include "base/files/file.h"
#include "checkpoint/hugging_face/export_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/whole_checkpoint.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/tensor_stream.h"
#include "checkpoint/tensor_files.h"
#include "checkpoint/tokenizer_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

// The `part`th of so many equal shares of a tensor's rows, passed on as Hugging Face's files have it.
void pass_on_part(const TensorFiles::Location& from, const HuggingFaceTensor& there, std::size_t part,
                  std::size_t parts, const ByteSink& sink) {
  const std::span<const std::byte> all = from.bytes();
  const std::size_t bytes = all.size() / parts;
  const std::span<const std::byte> here = all.subspan(part * bytes, bytes);
  const auto [rows, columns] = there.transposed;
  stream_transposed(here, columns, rows, sink);
}

void write_weights(const fs::path& path, const WholeCheckpoint& checkpoint, DType dtype) {
  const ModelConfig& model = checkpoint.model();
  // A body alone is stored without the prefix that it has beside a head.
  const std::size_t prefix =
      model.head == ModelHead::kNone ? hugging_face_mapping(model.kind).prefix.size() : std::size_t{0};
  std::vector<HuggingFaceTensors> there;
  std::vector<SafetensorsDeclaration> declarations;
  for (const Parameter& parameter : checkpoint.parameters()) {
    there.push_back(hugging_face_tensors(model, parameter));
    for (HuggingFaceTensor& tensor : there.back().parts) {
      tensor.name.erase(0, prefix);
      declarations.push_back({tensor.name, dtype, tensor.shape});
    }
  }
  SafetensorsWriter file(path, declarations, {{"format", "pt"}});  // without it from_pretrained refuses the file
  for (std::size_t i = 0; i < there.size(); ++i) {
    const TensorFiles::Location& from = checkpoint.at(i);
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
  const WholeCheckpoint whole(source);
  whole.require_finite();
  const DType dtype = whole.dtype(0);
  const std::string config = hugging_face_config(whole.model(), dtype, tokenizer);

  for (const auto& [name, content] : tokenizer) write_file_atomically(folder / name, content);
  write_weights(folder / kWeights, whole, dtype);
  write_file_atomically(folder / kConfig, config);  // last: without it the folder is no model
  out.finish();
}

}  // namespace teratron

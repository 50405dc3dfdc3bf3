#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "checkpoint/hugging_face/export_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/hugging_face/sentence_transformer.h"
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
  if (there.skipped_rows > 0) {
    const auto own_rows = static_cast<std::size_t>(there.shape[0] - there.skipped_rows);
    stream(std::vector<std::byte>(bytes / own_rows * static_cast<std::size_t>(there.skipped_rows)), sink);
  }
  stream_transposed(here, columns, rows, sink);
}

constexpr const char* kIndex = "model.safetensors.index.json";

// The model as Hugging Face's files have it: tensors by their names there, in files.
class StoredWeights {
 public:
  StoredWeights(const WholeCheckpoint& checkpoint, std::uint64_t max_file_bytes)
      : checkpoint_(checkpoint), dtype_(checkpoint.dtype(0)) {
    const ModelConfig& model = checkpoint.model();
    // A body alone is stored without the prefix that it has beside a head.
    const bool is_body = model.head == ModelHead::kNone || model.head == ModelHead::kVectors;
    const std::size_t prefix = is_body ? hugging_face_mapping(model.kind).prefix.size() : std::size_t{0};
    std::vector<SafetensorsDeclaration> declarations;
    for (std::size_t i = 0; i < checkpoint.parameters().size(); ++i) {
      const HuggingFaceTensors there = hugging_face_tensors(model, checkpoint.parameters()[i]);
      for (std::size_t part = 0; part < there.parts.size(); ++part) {
        const std::string name = there.parts[part].name.substr(prefix);
        declarations.push_back({name, dtype_, there.parts[part].shape});
        sources_.emplace(name, Source{i, there.parts[part], part, there.parts.size()});
      }
    }
    files_ = distribute(std::move(declarations), max_file_bytes);
    // In the order of transformers' own files, so one of its comes back byte for byte.
    for (auto& file : files_) std::ranges::sort(file, {}, &SafetensorsDeclaration::name);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (std::size_t file = 0; file < files_.size(); ++file) names.push_back(name(file));
    if (files_.size() > 1) names.emplace_back(kIndex);
    return names;
  }

  void write(const fs::path& folder) const {
    for (std::size_t file = 0; file < files_.size(); ++file) write_file(folder / name(file), files_[file]);
    if (files_.size() > 1) write_file_atomically(folder / kIndex, index());
  }

 private:
  struct Source {
    std::size_t parameter;
    HuggingFaceTensor there;
    std::size_t part, parts;
  };

  std::string name(std::size_t file) const { return tensor_file_name(TensorKind::kModel, file, files_.size()); }

  void write_file(const fs::path& path, const std::vector<SafetensorsDeclaration>& tensors) const {
    SafetensorsWriter file(path, tensors, {{"format", "pt"}});  // without it from_pretrained refuses the file
    for (const SafetensorsDeclaration& tensor : tensors) {
      const Source& source = sources_.at(tensor.name);
      const TensorFiles::Location& from = checkpoint_.at(source.parameter);
      const auto write = [&](std::span<const std::byte> bytes) { file.write(tensor.name, bytes); };
      pass_on_part(from, source.there, source.part, source.parts, converting_sink(*from.entry->dtype, dtype_, write));
      from.release();
    }
    file.commit();
  }

  std::string index() const {
    std::uint64_t bytes = 0;
    nlohmann::json map = nlohmann::json::object();
    for (std::size_t file = 0; file < files_.size(); ++file) {
      for (const SafetensorsDeclaration& tensor : files_[file]) {
        map[tensor.name] = name(file);
        bytes += bytes_of(tensor);
      }
    }
    return nlohmann::json{{"metadata", {{"total_size", bytes}}}, {"weight_map", std::move(map)}}.dump(2) + "\n";
  }

  const WholeCheckpoint& checkpoint_;
  const DType dtype_;
  std::vector<std::vector<SafetensorsDeclaration>> files_;
  std::map<std::string, Source> sources_;
};

}  // namespace

void export_to_hugging_face(const fs::path& checkpoint, const fs::path& folder, std::uint64_t max_file_bytes) {
  const fs::path source = find_checkpoint(checkpoint);
  check_holds_no_checkpoint(folder);
  constexpr const char* kConfig = "config.json";
  const FileContents tokenizer = find_tokenizer_files(source);
  const WholeCheckpoint whole(source);
  const std::string config = hugging_face_config(whole.model(), whole.dtype(0), tokenizer);
  const StoredWeights stored(whole, max_file_bytes);

  std::vector<std::string> files = stored.names();
  files.emplace_back(kConfig);
  FileContents small = sentence_transformer_files(whole.model());
  for (const auto& [name, content] : tokenizer) small.emplace(place_in_hugging_face(name), content);
  for (const auto& [name, content] : small) files.push_back(name);
  ExportFolder out(folder, files);  // before the long look at the checkpoint
  whole.require_intact();
  whole.require_finite();
  for (const auto& [name, content] : small) {
    make_folders((folder / name).parent_path());
    write_file_atomically(folder / name, content);
  }
  stored.write(folder);
  write_file_atomically(folder / kConfig, config);  // last: without it the folder is no model
  out.finish();
}

}  // namespace teratron

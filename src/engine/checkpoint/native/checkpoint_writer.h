// Writes one checkpoint's folder, whatever its tensors come from: a model in device memory or another file.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/block_writer.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

// UserError: `tensor` of the checkpoint after `iteration` updates holds a value that is not finite.
[[noreturn]] void throw_not_finite(const std::string& tensor, std::int64_t iteration);

// Nothing is visible before publish(), and nothing remains without it. EnvironmentError: a full disk, no permission.
class CheckpointWriter {
 public:
  // `blocks`: through which large files are written, and which outlives this; nullptr: a few of its own. Where it has
  // blocks for all bytes, write_tensors() copies them and does not wait for the disk.
  CheckpointWriter(std::filesystem::path root, RunOrigin run, const ModelConfig& config, const TrainingState& state,
                   BlockWriter* blocks = nullptr);

  // `fill(i, sink)` passes on the bytes of tensor i.
  using Fill = std::function<void(std::size_t tensor, const ByteSink& sink)>;
  void write_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors, const Fill& fill);
  void add_file(const std::string& file_name, std::string content);  // a small one; publish() writes it

  // The first tensor with a value that is not finite; empty: there is none.
  const std::string& not_finite() const { return not_finite_; }

  // Whether the checkpoint that publish() would replace has the same model and files. False: there is none.
  bool is_there_already() const;

  void bring_to_disk();  // all files but the manifest; publish() does it where it was not done

  // Makes it the current checkpoint; returns its folder. UserError where a value is not finite: no files remain.
  std::filesystem::path publish();

 private:
  void write_tensor(const SafetensorsDeclaration& tensor, BlockFile& file, FileRecord& record,
                    const std::function<void(const ByteSink&)>& fill);

  std::filesystem::path root_, final_path_;
  FolderInProgress folder_;
  Manifest manifest_;
  std::string not_finite_;
  std::map<std::string, std::string> small_files_;  // that are not written yet
  std::optional<BlockWriter> own_blocks_;
  BlockWriter& blocks_;
  std::list<BlockFile> open_;
};

}  // namespace teratron

// CheckpointWriter: writes the folder of one checkpoint, of a model in device memory or of another file's tensors.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/block_writer.h"
#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

class TensorCheck;

// Nothing is visible before publish(), and nothing remains without it. EnvironmentError: a full disk, no permission.
class CheckpointWriter {
 public:
  // `copy`: memory of multiples of DirectFile::kSector that outlives this, for copy_tensors().
  CheckpointWriter(std::filesystem::path root, RunOrigin run, const ModelConfig& config, const TrainingState& state,
                   std::span<std::byte> copy = {});

  // `fill(i, sink)` passes on the bytes of tensor i. The file is written meanwhile.
  using Fill = std::function<void(std::size_t tensor, const ByteSink& sink)>;
  void write_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors, const Fill& fill);

  // Copies tensors to memory by all threads, and checks them; bring_to_disk() writes them. `locate(i, room)` returns
  // the bytes of tensor i, which stay until this returns, or puts them into `room` and returns that.
  using Locate = std::function<std::span<const std::byte>(std::size_t tensor, std::span<std::byte> room)>;
  void copy_tensors(std::string_view file_name, const std::vector<SafetensorsDeclaration>& tensors,
                    const Locate& locate);
  // Memory that the copy of one such file takes.
  static std::size_t bytes_of_copy(const std::vector<SafetensorsDeclaration>& tensors);

  void add_file(const std::string& file_name, std::string content);  // a small one; publish() writes it

  // The first tensor with a value that is not finite; empty: there is none.
  const std::string& not_finite() const { return not_finite_; }

  void bring_to_disk();  // all files but the manifest; publish() does it where it was not done

  // Makes it the current checkpoint; returns its folder. UserError where a value is not finite: no files remain.
  std::filesystem::path publish();
  // As publish(), where check_takes_conversion() has passed. It deletes no other checkpoint. One of this iteration is
  // replaced if it has the same model and files; else it is a UserError.
  std::filesystem::path publish_as_only();

 private:
  struct CopiedFile {
    std::string name;
    std::span<const std::byte> bytes;
  };
  // Whether the checkpoint that publish() would replace has the same model and files. False: there is none.
  bool is_there_already() const;
  void note_tensor(const SafetensorsDeclaration& tensor, const TensorCheck& check, FileRecord& record);

  std::filesystem::path root_, final_path_;
  FolderInProgress folder_;
  Manifest manifest_;
  std::string not_finite_;
  std::map<std::string, std::string> small_files_;  // that are not written yet
  std::vector<CopiedFile> copied_files_;            // likewise
  std::span<std::byte> copy_;                       // the free rest of it
  std::optional<BlockWriter> blocks_;
  std::list<BlockFile> open_;
};

}  // namespace teratron

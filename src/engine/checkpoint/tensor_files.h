// The tensors of a checkpoint, of one kind (the model's or the optimizer's), in one file ("model.safetensors") or in
// several ("model-00001-of-00003.safetensors", as Hugging Face names them). Which tensor lies in which file does not
// matter to a reader.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/native/manifest.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron {

enum class TensorKind { kModel, kOptimizer };

// Whether a file of a checkpoint holds tensors of this kind, by its name.
bool is_tensor_file(std::string_view file_name, TensorKind kind);
bool is_tensor_file(std::string_view file_name);  // of either kind
// Whether the checkpoint has the optimizer's tensors.
bool has_optimizer(const Manifest& manifest);

// The name of file `index` (from 0) of `count`.
std::string tensor_file_name(TensorKind kind, std::size_t index = 0, std::size_t count = 1);

// Distributes tensors, in order, to files of at most `max_file_bytes` each; a larger tensor has its own. 0: one file.
std::vector<std::vector<SafetensorsDeclaration>> distribute(std::vector<SafetensorsDeclaration> tensors,
                                                            std::uint64_t max_file_bytes);

class TensorFiles {
 public:
  struct Location : TensorLocation {
    const FileRecord* record;
    void verify() const;  // DamagedCheckpoint unless its bytes are those that were written
  };

  // Opens every file of the kind that the manifest lists; `manifest` must outlive it. DamagedCheckpoint: one is missing
  // or not as it was written (with `verify` its header's checksum too), or two hold the same tensor.
  TensorFiles(const std::filesystem::path& folder, const Manifest& manifest, TensorKind kind, bool verify);

  bool empty() const { return files_.empty(); }
  // File by file, in the order of their bytes.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const Location& at(std::string_view name) const;  // of a tensor that is there

 private:
  std::list<SafetensorsFile> files_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, Location, std::less<>> locations_;
};

}  // namespace teratron

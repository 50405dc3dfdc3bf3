// WeightsFile: a file that has named tensors, be it safetensors or a pickle of torch.save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace teratron {

// A tensor of a file that is read.
struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;            // as safetensors spells it: "F32"
  std::optional<DType> dtype;        // none for types Teratron has no use for (BOOL, I8, F8_E4M3, ...)
  std::vector<std::int64_t> shape;   // any rank; [] is a scalar
  std::uint64_t begin = 0, end = 0;  // bytes of safetensors, counted from the first tensor's first byte
};

class WeightsFile {
 public:
  WeightsFile() = default;
  WeightsFile(WeightsFile&&) = default;
  WeightsFile& operator=(WeightsFile&&) = delete;
  virtual ~WeightsFile() = default;

  virtual const std::filesystem::path& path() const = 0;
  virtual const std::vector<SafetensorsEntry>& tensors() const = 0;
  // Values of one of tensors(), row by row. Not aligned to their type: copy before use.
  virtual std::span<const std::byte> bytes(const SafetensorsEntry& tensor) const = 0;
  // Gives the memory of a tensor back until it is read again.
  virtual void release(const SafetensorsEntry& tensor) const = 0;
};

// A tensor and the file that has it.
struct TensorLocation {
  const WeightsFile* file;
  const SafetensorsEntry* entry;

  std::span<const std::byte> bytes() const { return file->bytes(*entry); }
  void release() const { file->release(*entry); }
};

// Opens a file by its ending: ".bin" is of torch.save and holds a module's state, a dictionary of tensors. Nothing that
// it names is run, and all of it is read once to compare its checksums. A tensor that it has in another order than row
// by row stays in memory. UserError: missing, unsound, or no such dictionary.
std::unique_ptr<WeightsFile> open_weights_file(const std::filesystem::path& path);

}  // namespace teratron

// WeightsFile: a file that has named tensors, be it safetensors or a pickle of torch.save.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/safetensors/safetensors.h"

namespace teratron {

class WeightsFile {
 public:
  WeightsFile() = default;
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;
  virtual ~WeightsFile() = default;

  virtual const std::filesystem::path& path() const = 0;
  virtual const std::vector<SafetensorsEntry>& tensors() const = 0;
  // Values of one of tensors(), row by row. Not aligned to their type: copy before use.
  virtual std::span<const std::byte> bytes(const SafetensorsEntry& tensor) const = 0;
  // Gives the memory of a tensor back until it is read again.
  virtual void release(const SafetensorsEntry& tensor) const = 0;
};

// Opens a file by its ending: ".bin" is of torch.save and holds a module's state, a dictionary of tensors. Nothing that
// it names is run, and all of it is read once to compare its checksums. A tensor that it has in another order than row
// by row stays in memory. UserError: missing, unsound, or no such dictionary.
std::unique_ptr<WeightsFile> open_weights_file(const std::filesystem::path& path);

}  // namespace teratron

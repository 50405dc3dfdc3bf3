// TensorSource: tensors by name, of a checkpoint, a Hugging Face folder or a single file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "checkpoint/safetensors/tensor_stream.h"

namespace teratron {

struct SourceTensor {
  std::string name;
  std::optional<DType> dtype;       // none for types that Teratron has no use for
  std::string dtype_name;           // as safetensors spells it: "F32"
  std::vector<std::int64_t> shape;  // [] is a scalar
  std::string checksum;             // of its bytes; empty: the file has none
  bool is_of_optimizer = false;
};

class TensorSource {
 public:
  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;
  virtual ~TensorSource() = default;

  // The tensors, of a model in its order (embedding, layers, head), then those of an optimizer.
  const std::vector<SourceTensor>& tensors() const { return tensors_; }
  const std::filesystem::path& path() const { return path_; }

  // The bytes of a tensor, a few MB at a time. DamagedCheckpoint: they differ from their checksum.
  virtual void pass_on(std::size_t tensor, const ByteSink& sink) const = 0;

 protected:
  std::filesystem::path path_;
  std::vector<SourceTensor> tensors_;
};

// `path`: a folder that was saved to (its current checkpoint is taken), one checkpoint's folder, a folder of Hugging
// Face's (tensors under our names, in our order of values), or a file (weights_file.h). UserError: none of these, or
// damaged.
std::unique_ptr<TensorSource> open_tensors_of(const std::filesystem::path& path);

}  // namespace teratron

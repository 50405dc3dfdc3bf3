// Files of torch.save: a zip archive with a pickle of what was saved, in which tensors are calls that name a storage,
// its type, and where in it the values are; and an entry with the bytes of each storage. Before PyTorch 1.6 there was
// no archive (old_torch_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "checkpoint/safetensors/tensor_stream.h"
#include "checkpoint/torch/old_torch_file.h"
#include "checkpoint/torch/pickle.h"
#include "checkpoint/torch/zip_file.h"

namespace teratron {

struct TorchTensor {
  std::optional<DType> dtype;                // none for types that Teratron has no use for
  std::string dtype_name;                    // as safetensors spells it: "F32"
  std::vector<std::int64_t> shape, strides;  // strides in values; values may lie in any order, and be shared
  std::span<const std::byte> bytes;          // of the storage from the tensor's first value on
  std::string storage;                       // its key

  bool is_contiguous() const;  // `bytes` are the values, row by row
};

class TorchFile {
 public:
  // UserError: missing, not of torch.save, cut short, big-endian, or a pickle that is more than data (pickle.h).
  explicit TorchFile(const std::filesystem::path& path);

  const PickleValue& content() const { return old_ ? old_->content() : pickle_->content(); }
  const std::filesystem::path& path() const { return path_; }

  // The tensor that a value of content() is; none: it is something else. `name` is for messages. UserError: values that
  // do not lie in the storage.
  std::optional<TorchTensor> tensor(const PickleValue& value, std::string_view name) const;

  // The bytes of a tensor, row by row whatever its strides, a few MB at a time.
  void pass_on(const TorchTensor& tensor, const ByteSink& sink) const;
  // Gives the memory of a tensor back until it is read again.
  void release(const TorchTensor& tensor) const { old_ ? old_->release(tensor.bytes) : zip_->release(tensor.bytes); }
  // UserError: the storage's bytes are not those that were written, where the file has checksums. Reads all of them.
  void require_intact(const TorchTensor& tensor) const {
    if (zip_) zip_->require_intact(entry_of(tensor.storage));
  }

 private:
  std::optional<std::span<const std::byte>> storage(std::string_view key) const;
  std::string entry_of(std::string_view key) const;  // of the archive

  std::filesystem::path path_;
  std::optional<OldTorchFile> old_;  // or the archive:
  std::optional<ZipFile> zip_;
  std::string folder_;  // of all entries, with its slash
  std::optional<Pickle> pickle_;
};

}  // namespace teratron

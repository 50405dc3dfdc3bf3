// Files of torch.save before PyTorch 1.6, as gpt2 and bert-base-uncased were published: five pickles, one after the
// other (a number that marks the file, a version, sizes of types, what was saved, the keys of storages), then each
// storage: the number of its values in 8 bytes, and the values. They have no checksums.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/files/file.h"
#include "checkpoint/torch/pickle.h"

namespace teratron {

class OldTorchFile {
 public:
  static bool is_one(const MappedFile& file);

  // Takes a file that is_one(). UserError: cut short, big-endian, storages that are parts of others, or a pickle that
  // is more than data.
  explicit OldTorchFile(MappedFile file);

  const std::filesystem::path& path() const { return file_.path(); }
  const PickleValue& content() const { return saved_->content(); }
  // Bytes of a storage; nullptr: there is none with this key.
  const std::span<const std::byte>* find(std::string_view key) const;
  void release(std::span<const std::byte> bytes) const { file_.release(bytes); }

 private:
  // The next pickle, which `rest` no longer has.
  std::unique_ptr<Pickle> take_pickle(std::string_view& rest) const;
  void take_storages(std::string_view rest, const PickleValue& keys);

  MappedFile file_;
  std::unique_ptr<Pickle> saved_;
  std::map<std::string, std::span<const std::byte>, std::less<>> storages_;
};

}  // namespace teratron

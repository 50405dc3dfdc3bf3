// safetensors, the file of named tensors that Hugging Face reads and writes (github.com/huggingface/safetensors,
// "Format"): a u64 with the header's length, the header (JSON: each tensor's dtype, shape and offsets), then the
// tensors' bytes, row-major and little-endian, back to back without holes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/file.h"
#include "checkpoint/weights_file.h"

namespace teratron {

using SafetensorsMetadata = std::map<std::string, std::string>;

// A mapped file whose whole header has been checked: every tensor lies within the file, is as long as its dtype and
// shape say, and shares no byte with another.
class SafetensorsFile final : public WeightsFile {
 public:
  // UserError: missing, unreadable, or a fault of the format (which, and at which tensor).
  explicit SafetensorsFile(const std::filesystem::path& path);

  const std::vector<SafetensorsEntry>& tensors() const override { return tensors_; }  // in the order of their bytes
  const SafetensorsMetadata& metadata() const { return metadata_; }
  const SafetensorsEntry* find(std::string_view name) const;  // nullptr: there is none
  const std::filesystem::path& path() const override { return file_.path(); }

  std::span<const std::byte> bytes(const SafetensorsEntry& tensor) const override;
  void release(const SafetensorsEntry& tensor) const override { file_.release(bytes(tensor)); }
  std::span<const std::byte> header() const { return file_.bytes().first(data_begin_); }

 private:
  MappedFile file_;
  std::size_t data_begin_ = 0;
  SafetensorsMetadata metadata_;
  std::vector<SafetensorsEntry> tensors_;
  std::map<std::string_view, std::size_t> index_;  // keys are the names in tensors_
};

// A tensor of a file that is to be written.
struct SafetensorsDeclaration {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
};

// Everything of a file before its first tensor's first byte. `tensors` in the order in which their bytes follow; wider
// types first, so that all are aligned.
std::string safetensors_header_of(const std::vector<SafetensorsDeclaration>& tensors,
                                  const SafetensorsMetadata& metadata = {});

// Writes a file piece by piece; it is seen once commit() returns. EnvironmentError: the disk is full, no permission.
class SafetensorsWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::vector<SafetensorsDeclaration> tensors,
                    const SafetensorsMetadata& metadata = {});

  // The next bytes of tensor `name`, which must be the first one declared that is not complete.
  void write(std::string_view name, std::span<const std::byte> bytes);
  void commit();  // every declared byte has been written

  std::string_view header() const { return header_; }
  std::uint64_t bytes_written() const { return file_.bytes_written(); }

 private:
  void skip_complete();
  AtomicFile file_;
  std::vector<SafetensorsDeclaration> tensors_;
  std::string header_;
  std::size_t current_ = 0;
  std::uint64_t written_of_current_ = 0;
};

// Bytes of a tensor; InternalError where they pass 2^63.
std::uint64_t bytes_of(const SafetensorsDeclaration& tensor);

}  // namespace teratron

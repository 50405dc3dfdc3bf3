#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace teratron {
namespace {

constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kLargestHeader = 100'000'000;  // the reference implementation's bound

// The header's text, checked to lie within the file.
std::string_view header_text(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() < kLengthBytes) {
    throw_safetensors_error(file.path(), "it has {} bytes, fewer than the 8 of the header's length", bytes.size());
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kLargestHeader) {
    throw_safetensors_error(file.path(), "its header would be {} bytes long; the format's limit is {}", length,
                            kLargestHeader);
  }
  if (length > bytes.size() - kLengthBytes) {
    throw_safetensors_error(file.path(), "its header would be {} bytes long, and the file has {} in all", length,
                            bytes.size());
  }
  return file.text().substr(kLengthBytes, length);
}

void check_length(const SafetensorsEntry& tensor, const std::filesystem::path& path) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  std::int64_t bytes = safetensors_element_size(tensor.dtype_name);
  for (const std::int64_t dim : tensor.shape) {
    if (dim > 0 && bytes > kLargest / dim) {
      throw_safetensors_error(path, "the shape of tensor '{}' is too large to be true", tensor.name);
    }
    bytes *= dim;
  }
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != static_cast<std::uint64_t>(bytes)) {
    throw_safetensors_error(path, "tensor '{}' lies at bytes {} to {}, its shape and dtype need {}", tensor.name,
                            tensor.begin, tensor.end, bytes);
  }
}

// In the order of their bytes, the tensors must fill the data exactly.
void check_offsets(const std::vector<SafetensorsEntry>& tensors, std::uint64_t data_bytes,
                   const std::filesystem::path& path) {
  std::uint64_t filled = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    if (tensor.begin < filled) throw_safetensors_error(path, "tensor '{}' overlaps another", tensor.name);
    if (tensor.begin > filled) {
      throw_safetensors_error(path, "{} bytes before tensor '{}' belong to none", tensor.begin - filled, tensor.name);
    }
    filled = tensor.end;
    if (filled > data_bytes) {
      throw_safetensors_error(path, "tensor '{}' ends {} bytes beyond the file, which is cut short", tensor.name,
                              filled - data_bytes);
    }
  }
  if (filled < data_bytes) {
    throw_safetensors_error(path, "{} bytes after the last tensor belong to none", data_bytes - filled);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::string_view json = header_text(file_);
  data_begin_ = kLengthBytes + json.size();
  SafetensorsHeader header = parse_safetensors_header(json, path);
  metadata_ = std::move(header.metadata);
  tensors_ = std::move(header.tensors);
  for (const SafetensorsEntry& tensor : tensors_) check_length(tensor, path);
  std::ranges::stable_sort(tensors_, {}, [](const SafetensorsEntry& tensor) {
    return std::pair(tensor.begin, tensor.end);  // an empty tensor comes before the one that starts where it lies
  });
  check_offsets(tensors_, file_.bytes().size() - data_begin_, path);
  for (std::size_t i = 0; i < tensors_.size(); ++i) index_.emplace(tensors_[i].name, i);
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const SafetensorsEntry& tensor) const {
  return file_.bytes().subspan(data_begin_ + tensor.begin, tensor.end - tensor.begin);
}

}  // namespace teratron

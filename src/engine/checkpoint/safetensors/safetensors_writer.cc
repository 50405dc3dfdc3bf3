#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/round_up.h"
#include "checkpoint/safetensors/safetensors.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace teratron {
namespace {

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kAlignment = 8;  // of the first tensor's first byte, by spaces at the end of the header

}  // namespace

std::string safetensors_header_of(const std::vector<SafetensorsDeclaration>& tensors,
                                  const SafetensorsMetadata& metadata) {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  if (!metadata.empty()) json[kMetadata] = metadata;
  // An ordered object compares a key with all before it, so fields are appended to its list.
  auto& fields = json.get_ref<Json::object_t&>();
  fields.reserve(tensors.size() + 1);
  std::unordered_set<std::string_view> names = {kMetadata};
  std::uint64_t offset = 0;
  for (const SafetensorsDeclaration& tensor : tensors) {
    check(offset % static_cast<std::uint64_t>(size_of(tensor.dtype)) == 0, "wider types are declared first");
    check(names.insert(tensor.name).second, "a tensor is declared once");
    const std::uint64_t end = offset + bytes_of(tensor);
    fields.emplace_back(
        tensor.name,
        Json{{"dtype", safetensors_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}});
    offset = end;
  }
  std::string text = json.dump();
  text.resize(round_up(text.size(), kAlignment), ' ');
  static_assert(std::endian::native == std::endian::little);
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + text;
}

std::uint64_t bytes_of(const SafetensorsDeclaration& tensor) {
  std::int64_t bytes = size_of(tensor.dtype);
  for (const std::int64_t dim : tensor.shape) {
    check(dim >= 0 && (dim == 0 || bytes <= std::numeric_limits<std::int64_t>::max() / dim),
          "a tensor has a true size");
    bytes *= dim;
  }
  return static_cast<std::uint64_t>(bytes);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<SafetensorsDeclaration> tensors,
                                     const SafetensorsMetadata& metadata)
    : file_(path), tensors_(std::move(tensors)), header_(safetensors_header_of(tensors_, metadata)) {
  file_.write(std::string_view(header_));
  skip_complete();
}

void SafetensorsWriter::skip_complete() {
  while (current_ < tensors_.size() && written_of_current_ == bytes_of(tensors_[current_])) {
    ++current_;
    written_of_current_ = 0;
  }
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  check(current_ < tensors_.size(), "no more bytes than were declared");
  check_equal(name, tensors_[current_].name, "the tensor whose bytes are next");
  check(bytes.size() <= bytes_of(tensors_[current_]) - written_of_current_, "no more bytes than the tensor has");
  file_.write(bytes);
  written_of_current_ += bytes.size();
  skip_complete();
}

void SafetensorsWriter::commit() {
  check_equal(current_, tensors_.size(), "tensors written in full");
  file_.commit();
}

}  // namespace teratron

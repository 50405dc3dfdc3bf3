#include "checkpoint/gguf/gguf_file.h"

#include <algorithm>
#include <bit>
#include <concepts>
#include <string_view>

#include "base/error.h"
#include "base/round_up.h"
#include "checkpoint/gguf/encoding.h"

namespace teratron {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kGgufVersion = 3;
constexpr std::uint64_t kTensorAlignment = 32;  // of every tensor, counted from the first

// Numbers of GGUF's types of values.
enum class ValueType : std::uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9 };

struct TensorFormat {
  std::uint32_t number;  // of the type in a file
  std::int64_t block_values, block_bytes;
};
TensorFormat tensor_format(GgufType type) {
  switch (type) {
    case GgufType::kF32: return {0, 1, 4};
    case GgufType::kF16: return {1, 1, 2};
    case GgufType::kBf16: return {30, 1, 2};
    case GgufType::kQ4: return {2, kBlockValues, kQ4Bytes};
    case GgufType::kQ8: break;
  }
  return {8, kBlockValues, kQ8Bytes};
}

class GgufHeader {
 public:
  template <class T>
  requires std::integral<T> || std::floating_point<T>
  void add(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(std::string_view text) {
    add(std::uint64_t{text.size()});
    bytes_ += text;
  }
  void add(ValueType type) { add(static_cast<std::uint32_t>(type)); }

  void add_value(std::uint32_t value) { add_typed(ValueType::kU32, value); }
  void add_value(float value) { add_typed(ValueType::kF32, value); }
  void add_value(bool value) { add_typed(ValueType::kBool, static_cast<std::uint8_t>(value)); }
  void add_value(const std::string& value) { add_typed(ValueType::kString, std::string_view(value)); }
  void add_value(const std::vector<std::int32_t>& values) { add_array(ValueType::kI32, values); }
  void add_value(const std::vector<float>& values) { add_array(ValueType::kF32, values); }
  void add_value(const std::vector<std::string>& values) { add_array(ValueType::kString, values); }

  void align() { bytes_.resize(round_up(bytes_.size(), kTensorAlignment), '\0'); }
  const std::string& bytes() const { return bytes_; }

 private:
  template <class T>
  void add_typed(ValueType type, T value) {
    add(type);
    add(value);
  }
  template <class T>
  void add_array(ValueType type, const std::vector<T>& values) {
    add(ValueType::kArray);
    add(type);
    add(std::uint64_t{values.size()});
    for (const T& value : values) add(value);
  }
  std::string bytes_ = "GGUF";
};

std::string gguf_header(const GgufMetadata& metadata, std::span<const GgufTensor> tensors) {
  GgufHeader header;
  header.add(kGgufVersion);
  header.add(std::uint64_t{tensors.size()});
  header.add(std::uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) {
    header.add(std::string_view(key));
    std::visit([&](const auto& held) { header.add_value(held); }, value);
  }
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    header.add(std::string_view(tensor.name));
    header.add(static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) header.add(tensor.shape[axis]);  // columns come first
    header.add(tensor_format(tensor.type).number);
    header.add(offset);
    offset += round_up(bytes_of(tensor), kTensorAlignment);
  }
  header.align();
  return header.bytes();
}

}  // namespace

std::string_view name_of(GgufType type) {
  switch (type) {
    case GgufType::kF32: return "f32";
    case GgufType::kF16: return "f16";
    case GgufType::kBf16: return "bf16";
    case GgufType::kQ4: return "q4_0";
    case GgufType::kQ8: break;
  }
  return "q8_0";
}

std::int64_t values_of(const GgufTensor& tensor) {
  std::int64_t values = 1;
  for (const std::int64_t size : tensor.shape) values *= size;
  return values;
}

std::uint64_t bytes_of(const GgufTensor& tensor) {
  const TensorFormat format = tensor_format(tensor.type);
  check_equal(tensor.shape.back() % format.block_values, 0, "values of a row beside whole blocks");
  return static_cast<std::uint64_t>(values_of(tensor) / format.block_values * format.block_bytes);
}

GgufWriter::GgufWriter(const std::filesystem::path& path, const GgufMetadata& metadata, std::vector<GgufTensor> tensors)
    : file_(path), tensors_(std::move(tensors)) {
  file_.write(gguf_header(metadata, tensors_));
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    check(current_ < tensors_.size(), "bytes of a declared tensor");
    const std::uint64_t all = bytes_of(tensors_[current_]);
    const std::uint64_t now = std::min<std::uint64_t>(bytes.size(), all - written_of_current_);
    file_.write(bytes.first(now));
    bytes = bytes.subspan(now);
    written_of_current_ += now;
    if (written_of_current_ < all) continue;
    file_.write(std::string(round_up(all, kTensorAlignment) - all, '\0'));
    ++current_;
    written_of_current_ = 0;
  }
}

void GgufWriter::commit() {
  check_equal(current_, tensors_.size(), "tensors written");
  file_.commit();
}

}  // namespace teratron

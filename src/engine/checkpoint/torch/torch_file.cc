#include "checkpoint/torch/torch_file.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/error.h"
#include "checkpoint/safetensors/safetensors_header.h"
#include "checkpoint/torch/storage_types.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPickleName = "data.pkl";

std::string folder_of(const ZipFile& zip) {
  std::string folder;
  for (const auto& [name, entry] : zip.entries()) {
    const std::size_t slash = name.find('/');
    if (slash != std::string::npos && name.substr(slash + 1) == kPickleName) folder = name.substr(0, slash + 1);
  }
  if (folder.empty()) {
    throw_user_error("'{}' is a zip archive without {}, and so no file of torch.save", zip.path().string(),
                     kPickleName);
  }
  const ZipFile::Entry* const order = zip.find(folder + "byteorder");
  const std::string_view little = "little";
  if (order != nullptr && !std::ranges::equal(order->bytes, std::as_bytes(std::span(little)))) {
    throw_user_error("'{}' was written on a machine whose bytes are in the other order", zip.path().string());
  }
  return folder;
}

std::string_view pickle_in(const ZipFile& zip, const std::string& folder) {
  const std::string name = folder + std::string(kPickleName);
  zip.require_intact(name);
  const std::span<const std::byte> bytes = zip.find(name)->bytes;
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The whole numbers of a tuple, none below 0; none: it is something else.
std::optional<std::vector<std::int64_t>> sizes_of(const PickleValue& value) {
  if (!value.is(PickleKind::kList)) return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (const PickleValue* const item : value.items) {
    if (!item->is(PickleKind::kInteger) || item->integer < 0) return std::nullopt;
    sizes.push_back(item->integer);
  }
  return sizes;
}

// One past the last value's place, counted from the first's; none: too large to be true, or more values than `most`,
// as where strides show one value many times.
std::optional<std::int64_t> extent_of(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                                      std::int64_t most) {
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t last = 0, values = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::int64_t step = 0;
    if (__builtin_mul_overflow(shape[axis] - 1, strides[axis], &step) || __builtin_add_overflow(last, step, &last)) {
      return std::nullopt;
    }
  }
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(values, size, &values) || values > most) return std::nullopt;
  }
  std::int64_t end = 0;
  if (__builtin_add_overflow(last, 1, &end)) return std::nullopt;
  return end;
}

}  // namespace

bool TorchTensor::is_contiguous() const {
  std::int64_t values = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1 && strides[axis] != values) return false;
    values *= shape[axis];
  }
  return true;
}

TorchFile::TorchFile(const fs::path& path) : path_(path) {
  MappedFile file(path);
  if (OldTorchFile::is_one(file)) {
    old_.emplace(std::move(file));
    return;
  }
  zip_.emplace(std::move(file));
  folder_ = folder_of(*zip_);
  pickle_.emplace(pickle_in(*zip_, folder_), path);
}

std::optional<std::span<const std::byte>> TorchFile::storage(std::string_view key) const {
  if (old_) {
    const std::span<const std::byte>* const bytes = old_->find(key);
    return bytes == nullptr ? std::nullopt : std::optional(*bytes);
  }
  const ZipFile::Entry* const entry = zip_->find(entry_of(key));
  return entry == nullptr ? std::nullopt : std::optional(entry->bytes);
}

std::string TorchFile::entry_of(std::string_view key) const { return fmt::format("{}data/{}", folder_, key); }

std::optional<TorchTensor> TorchFile::tensor(const PickleValue& value, std::string_view name) const {
  if (!value.is(PickleKind::kObject) || value.text != "torch._utils._rebuild_tensor_v2") return std::nullopt;
  const auto fail = [&](std::string_view why) {
    throw_user_error("tensor '{}' in '{}' cannot be read: {}", name, path().string(), why);
  };
  // The arguments: storage, offset, shape, strides, what gradients need, and bits such as "neg", where there are any.
  // A storage is ("storage", type, key, ..).
  const std::vector<const PickleValue*>& arguments = value.items[0]->items;
  if (arguments.size() < 4 || !arguments[0]->is(PickleKind::kObject) || arguments[0]->text != kPersistentObject ||
      !arguments[1]->is(PickleKind::kInteger) || arguments[1]->integer < 0) {
    fail("it is made of other things than a storage and a place in it");
  }
  if (arguments.size() > 6 && !arguments[6]->items.empty()) {
    fail("its values stand there negated or conjugated; save it after resolve_neg() and resolve_conj()");
  }
  const std::vector<const PickleValue*>& storage = arguments[0]->items[0]->items;
  if (storage.size() < 3 || !storage[1]->is(PickleKind::kName) || !storage[2]->is(PickleKind::kText)) {
    fail("its storage is not named as torch.save names them");
  }
  const StorageType* const type = find_storage_type(storage[1]->text);
  if (type == nullptr) fail(fmt::format("its storage is a {}", storage[1]->text));
  TorchTensor tensor{.dtype = type->dtype,
                     .dtype_name = std::string(type->dtype_name),
                     .shape = {},
                     .strides = {},
                     .bytes = {},
                     .storage = std::string(storage[2]->text)};
  const std::optional<std::span<const std::byte>> stored = this->storage(tensor.storage);
  if (!stored) fail(fmt::format("its storage '{}' is not in the file", tensor.storage));
  const auto shape = sizes_of(*arguments[2]), strides = sizes_of(*arguments[3]);
  if (!shape || !strides || shape->size() != strides->size())
    fail("its shape or its strides are not as torch has them");
  const std::int64_t offset = arguments[1]->integer, there = std::ssize(*stored) / type->value_bytes;
  const std::optional<std::int64_t> extent = extent_of(*shape, *strides, there);
  const bool is_empty = extent == 0;  // then it may lie anywhere
  if (!extent || (!is_empty && (offset > there || *extent > there - offset))) {
    fail(fmt::format("it has more values than its storage of {} bytes, or they lie beyond that", stored->size()));
  }
  tensor.shape = *shape;
  tensor.strides = *strides;
  if (!is_empty) {
    tensor.bytes = stored->subspan(static_cast<std::size_t>(offset * type->value_bytes),
                                   static_cast<std::size_t>(*extent * type->value_bytes));
  }
  return tensor;
}

void TorchFile::pass_on(const TorchTensor& tensor, const ByteSink& sink) const {
  const auto value_bytes = static_cast<std::size_t>(safetensors_element_size(tensor.dtype_name));
  const std::size_t axes = tensor.shape.size();
  const std::int64_t values =
      std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<>());
  if (tensor.is_contiguous()) {
    stream(tensor.bytes, sink);
  } else {
    std::vector<std::byte> piece;
    std::vector<std::int64_t> index(axes);
    for (std::int64_t i = 0; i < values; ++i) {
      const std::int64_t place =
          std::inner_product(index.begin(), index.end(), tensor.strides.begin(), std::int64_t{0});
      const auto value = tensor.bytes.subspan(static_cast<std::size_t>(place) * value_bytes, value_bytes);
      piece.insert(piece.end(), value.begin(), value.end());
      for (std::size_t axis = axes; axis-- > 0 && ++index[axis] == tensor.shape[axis];) index[axis] = 0;
      if (piece.size() < kPieceBytes && i + 1 < values) continue;
      sink(piece);
      piece.clear();
    }
  }
  release(tensor);
}

}  // namespace teratron

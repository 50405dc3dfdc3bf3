#include "checkpoint/torch/torch_file.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "checkpoint/safetensors/safetensors_header.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPickleName = "data.pkl";

struct StorageType {
  std::string_view name;
  std::optional<DType> dtype;
  std::int64_t value_bytes;
};
constexpr StorageType kStorageTypes[] = {
    {"torch.DoubleStorage", DType::kF64, 8}, {"torch.FloatStorage", DType::kF32, 4},
    {"torch.HalfStorage", DType::kF16, 2},   {"torch.BFloat16Storage", DType::kBF16, 2},
    {"torch.LongStorage", DType::kI64, 8},   {"torch.IntStorage", DType::kI32, 4},
    {"torch.ShortStorage", std::nullopt, 2}, {"torch.CharStorage", std::nullopt, 1},
    {"torch.ByteStorage", DType::kU8, 1},    {"torch.BoolStorage", std::nullopt, 1},
};

// Opens the archive, and says what a file that is none may be.
ZipFile open_archive(const fs::path& path) {
  // Before zip archives, torch.save wrote pickles, the first of a number that marks them.
  constexpr std::string_view kOldBeginning = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9";
  const MappedFile file(path);
  if (!file.text().starts_with(kOldBeginning)) return ZipFile(path);
  throw_user_error(
      "'{}' is of torch.save before PyTorch 1.6; write it anew first: python3 -c \"import torch; "
      "torch.save(torch.load('{}', map_location='cpu', weights_only=False), 'NEW')\" (which runs what the file names)",
      path.string(), path.string());
}

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
  return last + 1;
}

}  // namespace

TorchFile::TorchFile(const fs::path& path)
    : zip_(open_archive(path)), folder_(folder_of(zip_)), pickle_(pickle_in(zip_, folder_), zip_.path()) {}

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
  const auto* const type = std::ranges::find(kStorageTypes, storage[1]->text, &StorageType::name);
  if (type == std::end(kStorageTypes)) fail(fmt::format("its storage is a {}", storage[1]->text));
  TorchTensor tensor{.dtype = type->dtype,
                     .dtype_name = std::string(type->dtype ? safetensors_name(*type->dtype) : type->name),
                     .shape = {},
                     .strides = {},
                     .bytes = {},
                     .entry = fmt::format("{}data/{}", folder_, storage[2]->text)};
  const ZipFile::Entry* const entry = zip_.find(tensor.entry);
  if (entry == nullptr) fail(fmt::format("its storage '{}' is not in the file", tensor.entry));
  const auto shape = sizes_of(*arguments[2]), strides = sizes_of(*arguments[3]);
  if (!shape || !strides || shape->size() != strides->size())
    fail("its shape or its strides are not as torch has them");
  const std::int64_t offset = arguments[1]->integer, there = std::ssize(entry->bytes) / type->value_bytes;
  const std::optional<std::int64_t> extent = extent_of(*shape, *strides, there);
  const bool is_empty = extent == 0;  // then it may lie anywhere
  if (!extent || (!is_empty && (offset > there || *extent > there - offset))) {
    fail(fmt::format("it has more values than its storage of {} bytes, or they lie beyond that", entry->bytes.size()));
  }
  tensor.shape = *shape;
  tensor.strides = *strides;
  if (!is_empty) {
    tensor.bytes = entry->bytes.subspan(static_cast<std::size_t>(offset * type->value_bytes),
                                        static_cast<std::size_t>(*extent * type->value_bytes));
  }
  return tensor;
}

void TorchFile::pass_on(const TorchTensor& tensor, const ByteSink& sink) const {
  check(tensor.dtype.has_value(), "a type that is read");
  const auto value_bytes = static_cast<std::size_t>(size_of(*tensor.dtype));
  const std::size_t axes = tensor.shape.size();
  std::int64_t values = 1;
  bool is_contiguous = true;
  for (std::size_t axis = axes; axis-- > 0;) {
    is_contiguous = is_contiguous && (tensor.shape[axis] == 1 || tensor.strides[axis] == values);
    values *= tensor.shape[axis];
  }
  if (is_contiguous) {
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
  zip_.release(tensor.bytes);
}

}  // namespace teratron

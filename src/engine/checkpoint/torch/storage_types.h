// Types of torch's storages, by the names that its pickles have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace teratron {

struct StorageType {
  std::string_view name;
  std::optional<DType> dtype;  // none for types that Teratron has no use for
  std::int64_t value_bytes;
};

constexpr StorageType kStorageTypes[] = {
    {"torch.DoubleStorage", DType::kF64, 8}, {"torch.FloatStorage", DType::kF32, 4},
    {"torch.HalfStorage", DType::kF16, 2},   {"torch.BFloat16Storage", DType::kBF16, 2},
    {"torch.LongStorage", DType::kI64, 8},   {"torch.IntStorage", DType::kI32, 4},
    {"torch.ShortStorage", std::nullopt, 2}, {"torch.CharStorage", std::nullopt, 1},
    {"torch.ByteStorage", DType::kU8, 1},    {"torch.BoolStorage", std::nullopt, 1},
};

// nullptr: there is no such type.
inline const StorageType* find_storage_type(std::string_view name) {
  const auto* const found = std::ranges::find(kStorageTypes, name, &StorageType::name);
  return found == std::end(kStorageTypes) ? nullptr : found;
}

}  // namespace teratron

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
  std::string_view name, dtype_name;  // torch's, and that of its values in safetensors
  std::optional<DType> dtype;         // none for types that Teratron has no use for
  std::int64_t value_bytes;
};

constexpr StorageType kStorageTypes[] = {
    {"torch.DoubleStorage", "F64", DType::kF64, 8}, {"torch.FloatStorage", "F32", DType::kF32, 4},
    {"torch.HalfStorage", "F16", DType::kF16, 2},   {"torch.BFloat16Storage", "BF16", DType::kBF16, 2},
    {"torch.LongStorage", "I64", DType::kI64, 8},   {"torch.IntStorage", "I32", DType::kI32, 4},
    {"torch.ShortStorage", "I16", std::nullopt, 2}, {"torch.CharStorage", "I8", std::nullopt, 1},
    {"torch.ByteStorage", "U8", DType::kU8, 1},     {"torch.BoolStorage", "BOOL", std::nullopt, 1},
};

// nullptr: there is no such type.
inline const StorageType* find_storage_type(std::string_view name) {
  const auto* const found = std::ranges::find(kStorageTypes, name, &StorageType::name);
  return found == std::end(kStorageTypes) ? nullptr : found;
}

}  // namespace teratron

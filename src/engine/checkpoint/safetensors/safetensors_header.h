// The JSON header of a safetensors file, parsed strictly and in one pass: time and memory are in proportion to its
// length, whatever it holds.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors/safetensors.h"

namespace teratron {

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> tensors;  // as listed
};

// UserError, naming `path`: not JSON, not the fields the format has, a name or a field given twice, a dtype it does not
// know. Sizes and offsets are not checked.
SafetensorsHeader parse_safetensors_header(std::string_view json, const std::filesystem::path& path);

// The format's name of a dtype.
std::string_view safetensors_name(DType dtype);

// Bytes of one element of any dtype of the format; 0 for a name it does not have.
std::int64_t safetensors_element_size(std::string_view dtype_name);

template <class... Args>
[[noreturn]] void throw_safetensors_error(const std::filesystem::path& path, fmt::format_string<Args...> format,
                                          Args&&... args) {
  throw_user_error("'{}' is not a sound safetensors file: {}; copy or download it again", path.string(),
                   fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace teratron

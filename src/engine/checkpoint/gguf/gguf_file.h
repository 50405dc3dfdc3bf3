// GGUF, the file that llama.cpp and programs built on it read (github.com/ggml-org/ggml, docs/gguf.md): values by name,
// the names, shapes and types of tensors, then their bytes, each tensor from a multiple of 32 on. Version 3,
// little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/files/file.h"

namespace teratron {

using GgufValue = std::variant<std::uint32_t, float, bool, std::string, std::vector<std::int32_t>, std::vector<float>,
                               std::vector<std::string>>;
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

// Types of a tensor's values. kQ8 is Q8_0 and kQ4 Q4_0: 32 values of a row in whole steps of one size
// (gguf/encoding.h).
enum class GgufType { kF32, kF16, kBf16, kQ8, kQ4 };
std::string_view name_of(GgufType type);  // "q8_0"
inline bool is_blocks(GgufType type) { return type == GgufType::kQ8 || type == GgufType::kQ4; }

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // as ours: rows, columns
  GgufType type = GgufType::kF32;
};

std::int64_t values_of(const GgufTensor& tensor);
std::uint64_t bytes_of(const GgufTensor& tensor);

// Writes a file, tensor by tensor; it is seen once commit() returns. EnvironmentError: the disk is full, no permission.
class GgufWriter {
 public:
  GgufWriter(const std::filesystem::path& path, const GgufMetadata& metadata, std::vector<GgufTensor> tensors);

  // The next bytes of the tensors, which come in their order, each whole before the next.
  void write(std::span<const std::byte> bytes);
  void commit();  // every tensor is whole

 private:
  AtomicFile file_;
  std::vector<GgufTensor> tensors_;
  std::size_t current_ = 0;
  std::uint64_t written_of_current_ = 0;
};

}  // namespace teratron

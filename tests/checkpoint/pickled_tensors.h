// Files of torch.save with a dictionary of tensors, as pytorch_model.bin is one.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/hugging_face_files.h"
#include "checkpoint/zip_writer.h"

namespace teratron::testing {

inline std::string storage_of(const std::string& dtype) {
  return dtype == "F64"    ? "DoubleStorage"
         : dtype == "F16"  ? "HalfStorage"
         : dtype == "BF16" ? "BFloat16Storage"
         : dtype == "I16"  ? "ShortStorage"
         : dtype == "I8"   ? "CharStorage"
         : dtype == "BOOL" ? "BoolStorage"
                           : "FloatStorage";
}

// The bytes of a matrix column by column.
inline std::string turned(const FileTensor& matrix) {
  const auto rows = static_cast<std::size_t>(matrix.shape[0]), columns = static_cast<std::size_t>(matrix.shape[1]);
  const std::size_t value = matrix.bytes.size() / rows / columns;
  std::string bytes;
  for (std::size_t c = 0; c < columns; ++c) {
    for (std::size_t r = 0; r < rows; ++r) bytes += matrix.bytes.substr((r * columns + c) * value, value);
  }
  return bytes;
}

// The file that torch.save makes of a dictionary of tensors. `turns`: matrices are views of their transposed ones.
inline std::string pickled(const FileTensors& tensors, bool turns = false) {
  std::string dictionary = "}(";
  ZipEntries storages;
  for (const auto& [name, tensor] : tensors) {
    const std::string key = std::to_string(storages.size());
    std::vector<std::int32_t> shape(tensor.shape.begin(), tensor.shape.end()), strides(shape.size());
    std::int32_t values = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; values *= shape[axis]) strides[axis] = values;
    const bool is_turned = turns && shape.size() == 2;
    if (is_turned) strides = {1, shape[0]};
    dictionary += pickled_text(name) + pickled_tensor(key, values, 0, shape, strides, storage_of(tensor.dtype));
    storages.emplace_back(key, is_turned ? turned(tensor) : tensor.bytes);
  }
  return torch_file_of(dictionary + "u", storages);
}

}  // namespace teratron::testing

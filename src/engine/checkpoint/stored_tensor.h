// Stored form of parameters: whole, in any layout, without the rows that pad the vocabulary. Comparison of a file's
// tensors with a model's, and the order of a classification head's rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors/safetensors.h"
#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

inline std::vector<std::int64_t> stored_shape(const Parameter& parameter) {
  std::vector<std::int64_t> shape;
  const Shape global = parameter.global_shape();
  for (int axis = 0; axis < global.rank(); ++axis) shape.push_back(global[axis]);
  if (!shape.empty()) shape[0] -= parameter.padding_rows;
  return shape;
}

// Whether the parameter has memory on this stage of the pipeline.
inline bool is_held(const Parameter& parameter) { return static_cast<bool>(parameter.value); }

struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

// One phrase for each tensor that is missing, unknown, of another shape, or not of a floating type.
std::vector<std::string> compare_tensors(std::span<const SafetensorsEntry> there,
                                         std::span<const ExpectedTensor> expected);

// The first few faults and the number of the rest, for one message.
std::string summary_of(const std::vector<std::string>& faults);

// Whether the rows of `parameter` are labels.
bool has_label_rows(const Parameter& parameter);

// Rows of a classification head in the order that a model asks for, whatever order they are stored in.
class LabelRows {
 public:
  // The models differ in no more than the order of their labels.
  LabelRows(const ModelConfig& stored, const ModelConfig& asked);

  // Returns `bytes`, all rows of `parameter` as stored, or a copy of them in order, which stays until the next call.
  std::span<const std::byte> ordered(const Parameter& parameter, std::span<const std::byte> bytes);

 private:
  std::vector<std::size_t> rows_;  // stored row of each row that is asked for; empty: the same
  std::vector<std::byte> copy_;
};

}  // namespace teratron

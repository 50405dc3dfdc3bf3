// Comparing the tensors of a file with those that a model needs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors/safetensors.h"

namespace teratron {

struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

// One phrase for each tensor that is missing, unknown, of another shape, or not of a floating type.
std::vector<std::string> compare_tensors(std::span<const SafetensorsEntry> there,
                                         std::span<const ExpectedTensor> expected);

// The first few faults and the number of the rest, for one message.
std::string summary_of(const std::vector<std::string>& faults);

}  // namespace teratron

// The rows of a classification head in the order that a model asks for, whatever order they are stored in.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/config.h"
#include "nn/parameter.h"

namespace teratron {

// Whether the rows of `parameter` are labels.
bool has_label_rows(const Parameter& parameter);

class LabelRows {
 public:
  // The models differ in no more than the order of their labels.
  LabelRows(const ModelConfig& stored, const ModelConfig& asked);

  // `bytes` are all rows of `parameter` as stored. Returned are they themselves or, until the next call, a copy in
  // order.
  std::span<const std::byte> ordered(const Parameter& parameter, std::span<const std::byte> bytes);

 private:
  std::vector<std::size_t> rows_;  // for each row that is asked for, the one stored; empty: as they are
  std::vector<std::byte> copy_;
};

}  // namespace teratron

#include "nn/parameter.h"

#include <algorithm>

#include "base/error.h"
#include "base/float_types.h"

namespace teratron {

std::vector<ParameterPiece> pieces_of(const Parameter& parameter, int rank) {
  const Shape global = parameter.global_shape();
  const std::int64_t rows = global[0], columns = global.rank() > 1 ? global[1] : 1;
  const std::int64_t stored = rows - parameter.padding_rows;
  if (!parameter.is_split()) return {{0, 0, stored, 0, columns}};
  if (parameter.split.axis == 1) {
    check_equal(parameter.split.blocks, 1, "blocks of a parameter split along its columns");
    const std::int64_t part = parameter.shape[1];
    return {{0, 0, stored, rank * part, part}};
  }
  const std::int64_t block = rows / parameter.split.blocks, part = block / parameter.group.size;
  std::vector<ParameterPiece> pieces;
  for (std::int64_t b = 0; b < parameter.split.blocks; ++b) {
    const std::int64_t first = b * block + rank * part, count = std::clamp<std::int64_t>(stored - first, 0, part);
    if (count > 0) pieces.push_back({b * part, first, count, 0, columns});
  }
  return pieces;
}

ElementRange shard_of(const Parameter& parameter, int rank) {
  const Sharding& sharding = parameter.sharding;
  const auto within = [&](std::int64_t element) {
    return std::clamp<std::int64_t>(element - sharding.first, 0, parameter.shape.elements());
  };
  return {within(rank * sharding.run), within((rank + 1) * sharding.run)};
}

ElementIndices indices_of(const Parameter& parameter) {
  const std::int64_t first = own_shard(parameter).begin;
  if (!parameter.is_split()) return {.first = first};
  // A block of the axis and all axes after it.
  std::int64_t run = parameter.shape[parameter.split.axis] / parameter.split.blocks;
  for (int axis = parameter.split.axis + 1; axis < parameter.shape.rank(); ++axis) run *= parameter.shape[axis];
  return {.first = first, .run = run, .whole_run = run * parameter.group.size, .offset = run * parameter.group.rank};
}

TensorRef OptimizerState::slot(std::string_view name) const {
  const auto found = std::ranges::find(slots, name, &OptimizerSlot::name);
  check(found != slots.end(), "a parameter has the slot that its optimizer updates");
  return found->values;
}

TensorRef slice_of(TensorRef whole, ElementRange range) {
  return whole.reshape({whole.elements()}).slice(0, range.begin, range.end);
}

std::optional<DType> master_dtype_of(DType compute) {
  if (compute == DType::kBF16) return DType::kU16;
  if (compute == DType::kF16) return accumulation_dtype_of(compute);
  return std::nullopt;
}

}  // namespace teratron

#include "optim/muon/matrices.h"

#include <algorithm>

namespace teratron {

ElementRange LayerMatrix::piece(int data_rank) const {
  const ElementRange shard = shard_of(*parameter, data_rank);
  const std::int64_t first = block * part_elements(), last = first + part_elements();
  const auto within = [&](std::int64_t element) { return std::clamp(element, first, last) - first; };
  return {within(shard.begin), within(shard.end)};
}

ElementRange LayerMatrix::own_piece() const {
  const ElementRange own = piece(parameter->sharding.rank);
  return {own.begin + block * part_elements(), own.end + block * part_elements()};
}

MatrixOwner owner_of(std::size_t number, int tensor_ranks) {
  const int rank = static_cast<int>(number);
  return {.tensor = rank % tensor_ranks, .data = rank / tensor_ranks};
}

std::vector<MatrixRound> rounds_of(std::span<Parameter* const> parameters) {
  std::vector<LayerMatrix> all;
  for (const Parameter* parameter : parameters) {
    if (!parameter->layer_matrix) continue;
    const LayerMatrix first{.parameter = parameter};
    for (std::int64_t block = 0; block < first.blocks(); ++block) all.push_back({parameter, block});
  }
  if (all.empty()) return {};
  std::ranges::stable_sort(all, std::greater(), &LayerMatrix::elements);
  const Parameter& any = *all.front().parameter;
  const auto ranks = static_cast<std::size_t>(any.tensor_rank().size * any.sharding.ranks);
  std::vector<MatrixRound> rounds;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % ranks == 0) rounds.emplace_back();
    rounds.back().push_back(all[i]);
  }
  return rounds;
}

}  // namespace teratron

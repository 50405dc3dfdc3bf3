// The matrices that Muon orthogonalises, where their elements lie, and which rank works on which of them. These are
// plain values, the same on every rank: no messages are needed to agree, and memory can be planned.
#pragma once

#include <span>
#include <vector>

#include "nn/parameter.h"

namespace teratron {

// One matrix of a layer: a parameter, or one of the blocks that are packed in it (queries, keys, values).
// Tensor-parallel ranks hold equal parts of it, rows or columns; with a sharded optimizer the data-parallel ranks hold
// a piece each of every part, a run of its elements.
struct LayerMatrix {
  const Parameter* parameter = nullptr;
  std::int64_t block = 0;

  bool is_split_by_columns() const { return parameter->split.axis == 1; }
  std::int64_t blocks() const { return is_split_by_columns() ? 1 : parameter->split.blocks; }
  std::int64_t part_rows() const { return parameter->shape[0] / blocks(); }
  std::int64_t part_columns() const { return parameter->shape[1]; }
  std::int64_t part_elements() const { return part_rows() * part_columns(); }
  std::int64_t rows() const { return part_rows() * (is_split_by_columns() ? 1 : parameter->group.size); }
  std::int64_t columns() const { return part_columns() * (is_split_by_columns() ? parameter->group.size : 1); }
  std::int64_t elements() const { return rows() * columns(); }
  int parts() const { return parameter->group.size; }
  // The part that a tensor-parallel rank holds; the ranks that send it to an owner, one of its replicas each.
  int part_of(int tensor_rank) const { return tensor_rank / parameter->replicas; }
  int sender_of(int part, int owner) const { return part == part_of(owner) ? owner : part * parameter->replicas; }

  // The piece of a data-parallel rank, counted from the start of this tensor-parallel rank's part.
  ElementRange piece(int data_rank) const;
  // This rank's piece, counted from the start of the rank's part of the parameter.
  ElementRange own_piece() const;
};

// A rank among those that share matrices: by tensor, and by data where the optimizer's state is shared out.
struct MatrixOwner {
  int tensor = 0, data = 0;
};

// Matrices that are worked on at a time, one by each rank at most: number i by owner_of(i).
using MatrixRound = std::vector<LayerMatrix>;
MatrixOwner owner_of(std::size_t number, int tensor_ranks);

// All matrices of one rank's parameters. The largest come first, so that those of a round cost alike.
std::vector<MatrixRound> rounds_of(std::span<Parameter* const> parameters);

}  // namespace teratron

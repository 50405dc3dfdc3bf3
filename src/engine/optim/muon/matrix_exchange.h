// Brings the matrices of one round to their owners and back. Every rank sends its piece of a matrix to one
// data-parallel rank, which then sends the whole part to the owner among the tensor-parallel ranks. Each element
// travels at most twice in each direction, in the compute type, and to one rank at a time.
#pragma once

#include <optional>
#include <vector>

#include "comm/mesh.h"
#include "nn/carver.h"
#include "ops/backend.h"
#include "optim/muon/matrices.h"
#include "optim/muon/newton_schulz.h"

namespace teratron {

// The tensors of one rank in a round, of the compute type but for OrthogonalizeMemory::wide_gram.
struct RoundTensors {
  std::vector<TensorRef> pieces;  // [matrix]: this rank's own, flat
  std::vector<TensorRef> parts;   // [matrix]: [part rows, part columns] of those that pass through here; else null
  struct Whole {
    TensorRef matrix;  // [rows, columns]
    OrthogonalizeMemory memory;
  };
  std::optional<Whole> whole;  // nothing: this rank owns none of the matrices
};
RoundTensors carve_round(const MatrixRound& round, const MatrixOwner& rank, DType compute, Carver& carver);

// Bytes of the rank that needs most.
std::int64_t round_bytes(const MatrixRound& round, DType compute);

class MatrixExchange {
 public:
  // Refers to all of its arguments. `tensors`: carve_round()'s of this rank.
  MatrixExchange(Backend& backend, const Mesh& mesh, const MatrixRound& round, const RoundTensors& tensors);

  // Gathers the ranks' pieces into whole matrices, and scatters them. All ranks that share the matrices call both.
  void gather() const;
  void scatter() const;

 private:
  bool passes_through(std::size_t number) const;
  bool owns(std::size_t number) const;
  // Part of a tensor-parallel rank in the owner's matrix.
  TensorRef part_of_whole(std::size_t number, int index) const;
  // Contiguous copy of a part in transit: this rank's own, or another's in the owner's workspace.
  TensorRef part_in_transit(std::size_t number, int index) const;
  void exchange_pieces(bool to_owner) const;
  void exchange_parts(bool to_owner) const;

  Backend& backend_;
  const Mesh& mesh_;
  const MatrixRound& round_;
  const RoundTensors& tensors_;
  const GroupRank tensor_, data_;  // data: of those that share the optimizer's state
};

}  // namespace teratron

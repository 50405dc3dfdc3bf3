#include "optim/muon/matrix_exchange.h"

#include <algorithm>

namespace teratron {
namespace {

// Starts sending or receiving a view, unless it is empty.
void exchange(Communicator& group, bool sends, TensorRef view, int other, std::vector<Pending>& pending) {
  if (view.elements() == 0) return;
  pending.push_back(sends ? group.start_send(view, other) : group.start_receive(view, other));
}

RoundTensors::Whole carve_whole(const LayerMatrix& matrix, DType compute, Carver& carver) {
  const DType accumulation = accumulation_dtype_of(compute);
  const std::int64_t n = std::min(matrix.rows(), matrix.columns());
  const Shape shape{matrix.rows(), matrix.columns()};
  RoundTensors::Whole whole;
  whole.matrix = carver.take(compute, shape);
  whole.memory = {.other = carver.take(compute, shape),
                  .gram = carver.take(compute, {n, n}),
                  .square = carver.take(compute, {n, n})};
  const bool is_wider = matrix.rows() > matrix.columns() && accumulation != compute;
  whole.memory.wide_gram = is_wider ? carver.take(accumulation, {n, n}) : whole.memory.gram;
  return whole;
}

}  // namespace

RoundTensors carve_round(const MatrixRound& round, const MatrixOwner& rank, DType compute, Carver& carver) {
  const int tensor_ranks = round.front().parameter->tensor_rank().size,
            data_ranks = round.front().parameter->sharding.ranks;
  RoundTensors tensors;
  for (const LayerMatrix& matrix : round) {
    tensors.pieces.push_back(carver.take(compute, {matrix.piece(rank.data).count()}));
  }
  tensors.parts.resize(round.size());
  for (std::size_t i = 0; i < round.size(); ++i) {
    const MatrixOwner owner = owner_of(i, tensor_ranks);
    if (owner.data != rank.data) continue;
    const Shape part{round[i].part_rows(), round[i].part_columns()};
    // Without sharding, the piece is the part.
    tensors.parts[i] = data_ranks > 1 ? carver.take(compute, part) : tensors.pieces[i].reshape(part);
    if (owner.tensor == rank.tensor) tensors.whole = carve_whole(round[i], compute, carver);
  }
  return tensors;
}

std::int64_t round_bytes(const MatrixRound& round, DType compute) {
  const Parameter& any = *round.front().parameter;
  std::int64_t most = 0;
  for (int data = 0; data < any.sharding.ranks; ++data) {
    for (int tensor = 0; tensor < any.tensor_rank().size; ++tensor) {
      Carver carver;
      carve_round(round, {.tensor = tensor, .data = data}, compute, carver);
      most = std::max(most, carver.bytes());
    }
  }
  return most;
}

MatrixExchange::MatrixExchange(Backend& backend, const Mesh& mesh, const MatrixRound& round,
                               const RoundTensors& tensors)
    : backend_(backend),
      mesh_(mesh),
      round_(round),
      tensors_(tensors),
      tensor_(round.front().parameter->tensor_rank()),
      data_{round.front().parameter->sharding.rank, round.front().parameter->sharding.ranks} {}

bool MatrixExchange::passes_through(std::size_t number) const {
  return owner_of(number, tensor_.size).data == data_.rank;
}

bool MatrixExchange::owns(std::size_t number) const {
  return passes_through(number) && owner_of(number, tensor_.size).tensor == tensor_.rank;
}

TensorRef MatrixExchange::part_of_whole(std::size_t number, int index) const {
  const LayerMatrix& matrix = round_[number];
  const int axis = matrix.is_split_by_columns() ? 1 : 0;
  const std::int64_t part = axis == 1 ? matrix.part_columns() : matrix.part_rows();
  return tensors_.whole->matrix.slice(axis, index * part, (index + 1) * part);
}

TensorRef MatrixExchange::part_in_transit(std::size_t number, int index) const {
  const TensorRef& own = tensors_.parts[number];
  if (index == round_[number].part_of(tensor_.rank)) return own;
  const std::int64_t first = index * own.elements();
  return slice_of(tensors_.whole->memory.other, {first, first + own.elements()}).reshape(own.shape);
}

void MatrixExchange::exchange_pieces(bool to_owner) const {
  if (data_.size == 1) return;
  std::vector<Pending> pending;
  for (std::size_t i = 0; i < round_.size(); ++i) {
    if (!passes_through(i)) {
      exchange(*mesh_.data, to_owner, tensors_.pieces[i], owner_of(i, tensor_.size).data, pending);
      continue;
    }
    for (int rank = 0; rank < data_.size; ++rank) {
      const TensorRef in_part = slice_of(tensors_.parts[i], round_[i].piece(rank));
      if (rank != data_.rank) {
        exchange(*mesh_.data, !to_owner, in_part, rank, pending);
      } else {
        to_owner ? backend_.copy(in_part, tensors_.pieces[i]) : backend_.copy(tensors_.pieces[i], in_part);
      }
    }
  }
  for (Pending& message : pending) message.wait();
}

void MatrixExchange::exchange_parts(bool to_owner) const {
  std::vector<Pending> pending;
  for (std::size_t i = 0; i < round_.size(); ++i) {
    if (!passes_through(i)) continue;
    const LayerMatrix& matrix = round_[i];
    const int owner = owner_of(i, tensor_.size).tensor;
    const auto is_sender = [&](int rank) { return matrix.sender_of(matrix.part_of(rank), owner) == rank; };
    if (!owns(i)) {
      if (!to_owner || is_sender(tensor_.rank)) {
        exchange(*mesh_.tensor, to_owner, tensors_.parts[i], owner, pending);
      }
      continue;
    }
    for (int rank = 0; rank < tensor_.size; ++rank) {
      if (rank == tensor_.rank || (to_owner && !is_sender(rank))) continue;
      exchange(*mesh_.tensor, !to_owner, part_in_transit(i, matrix.part_of(rank)), rank, pending);
    }
  }
  for (Pending& message : pending) message.wait();
}

void MatrixExchange::gather() const {
  exchange_pieces(true);
  exchange_parts(true);
  for (std::size_t i = 0; i < round_.size(); ++i) {
    for (int part = 0; owns(i) && part < round_[i].parts(); ++part) {
      backend_.copy(part_of_whole(i, part), part_in_transit(i, part));
    }
  }
}

void MatrixExchange::scatter() const {
  for (std::size_t i = 0; i < round_.size(); ++i) {
    for (int part = 0; owns(i) && part < round_[i].parts(); ++part) {
      backend_.copy(part_in_transit(i, part), part_of_whole(i, part));
    }
  }
  exchange_parts(false);
  exchange_pieces(false);
}

}  // namespace teratron

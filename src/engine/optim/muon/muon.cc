#include "optim/muon/muon.h"

#include <algorithm>
#include <cmath>

#include "optim/muon/matrix_exchange.h"

namespace teratron {
namespace {

constexpr const char* kMomentum = "momentum";
constexpr double kUpdateScale = 0.2;  // Moonshot's, section 2.2: the root mean square of AdamW's updates

// momentum <- mu momentum + gradient; gradient <- gradient + mu momentum, which is Nesterov's.
void add_momentum(Backend& backend, const Parameter& parameter, double mu, double gradient_scale) {
  const ElementRange own = own_shard(parameter);
  if (own.count() == 0) return;
  const TensorRef gradient = slice_of(parameter.gradient, own), momentum = parameter.state.slot(kMomentum);
  backend.scale_add(momentum, mu, gradient, gradient_scale);
  backend.scale_add(gradient, gradient_scale, momentum, mu);
}

// The Frobenius norm of every whole matrix, in order, the same on all ranks that share them.
std::vector<double> norms_of(Backend& backend, const Mesh& mesh, const std::vector<MatrixRound>& rounds) {
  std::vector<double> norms;
  for (const MatrixRound& round : rounds) {
    for (const LayerMatrix& matrix : round) {
      const bool counts = matrix.parameter->counts();  // else another replica's does
      const TensorRef gradient = slice_of(matrix.parameter->gradient, matrix.own_piece());
      norms.push_back(counts ? backend.sum_of_squares(gradient) : 0.0);
    }
  }
  mesh.tensor->all_reduce_host(norms);
  if (rounds.front().front().parameter->sharding.ranks > 1) mesh.data->all_reduce_host(norms);
  std::ranges::transform(norms, norms.begin(), [](double sum) { return std::sqrt(sum); });
  return norms;
}

// weights <- keep * weights + scale * direction, of this rank's piece of the matrix; its gradient is scratch.
void move_weights(Backend& backend, const LayerMatrix& matrix, TensorRef direction, double keep, double scale) {
  const ElementRange piece = matrix.own_piece();
  if (piece.count() == 0) return;
  const Parameter& parameter = *matrix.parameter;
  const TensorRef value = slice_of(parameter.value, piece);
  if (!parameter.state.master) return backend.scale_add(value, keep, direction, scale);
  const std::int64_t first = piece.begin - own_shard(parameter).begin;
  const TensorRef master = parameter.state.master.slice(0, first, first + piece.count());
  if (master.dtype != DType::kU16) {
    backend.scale_add(master, keep, direction, scale);
    return backend.copy(value, master);
  }
  const TensorRef whole = slice_of(parameter.gradient, piece);
  backend.join_floats(whole, value, master);
  backend.scale_add(whole, keep, direction, scale);
  backend.split_floats(value, master, whole);
}

}  // namespace

std::vector<OptimizerSlot> MuonOptimizer::slots(const Parameter& parameter, DType compute) const {
  if (!parameter.layer_matrix) return rest_.slots(parameter, compute);
  return {{.name = kMomentum, .dtype = bf16_state_ ? DType::kBF16 : accumulation_dtype_of(compute)}};
}

UpdateMemory MuonOptimizer::memory(std::span<Parameter* const> parameters, DType compute) const {
  UpdateMemory memory;
  for (const MatrixRound& round : rounds_of(parameters)) {
    memory.bytes = std::max(memory.bytes, round_bytes(round, compute));
    for (const LayerMatrix& matrix : round) {
      std::ranges::copy(orthogonalize_products(matrix.rows(), matrix.columns()), std::back_inserter(memory.products));
    }
  }
  return memory;
}

void MuonOptimizer::update(Backend& backend, const Mesh& mesh, std::span<Parameter* const> parameters,
                           const UpdateStep& step, Carver workspace) const {
  std::vector<Parameter*> rest, matrices;
  for (Parameter* parameter : parameters) (parameter->layer_matrix ? matrices : rest).push_back(parameter);
  rest_.update(backend, mesh, rest, step, {});
  if (matrices.empty()) return;
  const double gradient_scale = clipped_scale(step, rest_settings_.clip);
  for (const Parameter* parameter : matrices) add_momentum(backend, *parameter, settings_.momentum, gradient_scale);

  const std::vector<MatrixRound> rounds = rounds_of(matrices);
  const std::vector<double> norms = norms_of(backend, mesh, rounds);
  const MatrixOwner self{.tensor = matrices.front()->tensor_rank().rank, .data = matrices.front()->sharding.rank};
  std::size_t number = 0;  // among all matrices
  for (const MatrixRound& round : rounds) {
    Carver carver = workspace;
    const RoundTensors tensors = carve_round(round, self, backend.compute_dtype(), carver);
    const MatrixExchange exchange(backend, mesh, round, tensors);
    for (std::size_t i = 0; i < round.size(); ++i, ++number) {
      backend.scale_add(tensors.pieces[i], 0, slice_of(round[i].parameter->gradient, round[i].own_piece()),
                        1 / (norms[number] + settings_.epsilon));
    }
    exchange.gather();
    if (tensors.whole) orthogonalize(backend, tensors.whole->matrix, tensors.whole->memory);
    exchange.scatter();
    for (std::size_t i = 0; i < round.size(); ++i) {
      const double larger = static_cast<double>(std::max(round[i].rows(), round[i].columns()));
      const double decay = round[i].parameter->decay ? rest_settings_.weight_decay : 0.0;
      move_weights(backend, round[i], tensors.pieces[i], 1 - step.learning_rate * decay,
                   -step.learning_rate * kUpdateScale * std::sqrt(larger));
    }
  }
}

}  // namespace teratron

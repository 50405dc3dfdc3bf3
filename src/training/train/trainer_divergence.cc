// Reports where gradients that are not finite began. The update's micro-batches are computed again, each for itself and
// on each rank for itself, so that no sum over micro-batches or ranks hides the place.
#include <cmath>
#include <utility>

#include "base/error.h"
#include "train/trainer.h"

namespace teratron {
namespace {

// A value that is not finite: how deep in the model it stands, and what it is called. No name: there is none.
struct Origin {
  std::int64_t depth = 0;
  std::string name;
  std::string details = {};
};

// The backward pass goes from the last parameter to the first. `parameters`: of the whole model, in order.
Origin first_gradient_not_finite(Backend& backend, std::span<Parameter* const> parameters) {
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Parameter& parameter = *parameters[i];
    if (parameter.gradient && !std::isfinite(backend.sum_of_squares(parameter.gradient))) {
      return {static_cast<std::int64_t>(i), parameter.name};
    }
  }
  return {};
}

// The one that a pass in this direction meets first, and the rank of the group where it does.
std::pair<Origin, int> first_met(Communicator& group, const Origin& own, bool forward) {
  const std::vector<std::int64_t> depths = group.all_gather_host(own.depth);
  const std::vector<std::string> names = group.all_gather_host(own.name), details = group.all_gather_host(own.details);
  std::size_t first = 0;
  for (std::size_t rank = 1; rank < names.size(); ++rank) {
    const bool is_first =
        names[first].empty() || (forward ? depths[rank] < depths[first] : depths[rank] > depths[first]);
    if (!names[rank].empty() && is_first) first = rank;
  }
  return {{depths[first], names[first], details[first]}, static_cast<int>(first)};
}

}  // namespace

// All ranks of the model report the same.
std::string Trainer::first_not_finite(const MicroBatch& alone, std::int64_t micro_batch) {
  const Mesh& mesh = executor_.mesh();
  const bool in_forward = !std::isfinite(executor_.forward_backward_alone(alone).total());  // on all ranks of the model
  const auto first_output = [&]() -> Origin {
    Executor::NotFinite output = executor_.first_not_finite(alone);
    std::string details;
    if (!output.operation.empty()) details += ", first that of " + output.operation;
    if (!output.parameter.empty()) details += fmt::format(", whose '{}' is not finite", output.parameter);
    return {output.layer, std::move(output.name), std::move(details)};
  };
  const Origin own =
      in_forward ? first_output() : first_gradient_not_finite(executor_.backend(), executor_.all_parameters());
  const auto& [origin, rank] = first_met(*mesh.model, own, in_forward);
  if (origin.name.empty() && !in_forward) return "";
  std::string what = "the loss that the head computes";
  if (!origin.name.empty()) {
    what = in_forward ? "the output of " + origin.name : fmt::format("the gradient of '{}'", origin.name);
  }
  const int world_rank = mesh.data->rank() * mesh.model->size() + (origin.name.empty() ? 0 : rank);
  return fmt::format("{} (rank {}, its micro-batch {}) is not finite{}", what, world_rank, micro_batch, origin.details);
}

std::string Trainer::first_not_finite() {
  std::int64_t micro_batch = 0;
  for (const MicroBatch& alone : read_share()) {
    std::string found = first_not_finite(alone, micro_batch++);
    if (!found.empty()) return found;
  }
  return "";
}

void Trainer::throw_diverged() {
  require_readable_corpus();  // of samples that stand for others, a loss says nothing
  std::string first;
  for (std::string& found : executor_.mesh().data->all_gather_host(first_not_finite())) {
    if (first.empty()) first = std::move(found);
  }
  throw DivergedError(
      fmt::format("training has diverged in iteration {}: {}; the weights were not updated. Lower --lr, lengthen "
                  "--lr-warmup-iters or set --clip-grad, and go on from the last checkpoint, or begin anew",
                  iteration_ + 1, first.empty() ? "the sum of all gradients is not finite" : first));
}

void Trainer::throw_weights_diverged(const std::string& what) const {
  throw DivergedError(fmt::format(
      "training has diverged: {} of the weights after iteration {} is not finite; they are not saved. Lower --lr, "
      "lengthen --lr-warmup-iters or set --clip-grad, and go on from the last checkpoint, or begin anew",
      what, iteration_));
}

}  // namespace teratron

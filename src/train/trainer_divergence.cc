// What a Trainer tells when gradients are not finite: where that began. The update's micro-batches are computed again,
// each for itself and on each rank for itself, so that neither a sum over micro-batches nor one over ranks hides it.
#include <cmath>
#include <ranges>

#include "base/error.h"
#include "train/trainer.h"

namespace teratron {
namespace {

// Of the texts of a group's ranks, the first that says something.
std::string first_told(Communicator& group, const std::string& own) {
  for (std::string& text : group.all_gather_host(own)) {
    if (!text.empty()) return text;
  }
  return "";
}

// The backward pass goes from the last parameter to the first.
std::string first_gradient_not_finite(Backend& backend, std::span<Parameter* const> parameters) {
  for (const Parameter* parameter : parameters | std::views::reverse) {
    if (!std::isfinite(backend.sum_of_squares(parameter->gradient))) return parameter->name;
  }
  return "";
}

}  // namespace

std::string Trainer::first_not_finite() {
  const Mesh& mesh = runner_.mesh();
  std::string first;
  std::int64_t micro_batch = -1;
  for (const MicroBatch& alone : read_share()) {
    ++micro_batch;
    const double loss = runner_.forward_backward_alone(alone);
    std::string found;
    if (!std::isfinite(loss)) {  // on all ranks of the model, so all look
      const std::string place = runner_.first_not_finite(alone);
      found = place.empty() ? "the loss" : "the output of " + place;
    } else if (const std::string name = first_gradient_not_finite(runner_.backend(), parameters_); !name.empty()) {
      found = fmt::format("the gradient of '{}'", name);
    }
    if (found.empty() || !first.empty()) continue;
    const int rank = mesh.data->rank() * mesh.model->size() + mesh.model->rank();
    first = fmt::format("{} (rank {}, its micro-batch {})", found, rank, micro_batch);
  }
  return first;
}

void Trainer::throw_diverged() {
  const Mesh& mesh = runner_.mesh();
  const std::string first = first_told(*mesh.data, first_told(*mesh.model, first_not_finite()));
  throw_user_error(
      "training has diverged in iteration {}: {} is not finite; the weights were not updated. Lower --lr, lengthen "
      "--lr-warmup-iters or set --clip-grad, and go on from the last checkpoint",
      iteration_ + 1, first.empty() ? "the sum of all gradients" : first);
}

}  // namespace teratron

#include "train/watch/not_finite.h"

#include <cmath>
#include <utility>

#include "base/error.h"

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
    if (parameter.gradient && !backend.is_finite(parameter.gradient)) {
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

// All ranks of the model report the same.
std::string first_not_finite_of(Executor& executor, const MicroBatch& alone, std::int64_t micro_batch) {
  const Mesh& mesh = executor.mesh();
  const bool in_forward = !std::isfinite(executor.forward_backward_alone(alone).total());  // on all ranks of the model
  const auto first_output = [&]() -> Origin {
    Executor::NotFinite output = executor.first_not_finite(alone);
    std::string details;
    if (!output.operation.empty()) details += ", first that of " + output.operation;
    if (!output.parameter.empty()) details += fmt::format(", whose '{}' is not finite", output.parameter);
    return {output.layer, std::move(output.name), std::move(details)};
  };
  const Origin own =
      in_forward ? first_output() : first_gradient_not_finite(executor.backend(), executor.all_parameters());
  const auto& [origin, rank] = first_met(*mesh.model, own, in_forward);
  if (origin.name.empty() && !in_forward) return "";
  std::string what = "the loss that the head computes";
  if (!origin.name.empty()) {
    what = in_forward ? "the output of " + origin.name : fmt::format("the gradient of '{}'", origin.name);
  }
  const int world_rank = mesh.data->rank() * mesh.model->size() + (origin.name.empty() ? 0 : rank);
  return fmt::format("{} (rank {}, its micro-batch {}) is not finite{}", what, world_rank, micro_batch, origin.details);
}

}  // namespace

std::string first_not_finite(Executor& executor, std::span<const MicroBatch> share) {
  std::int64_t micro_batch = 0;
  for (const MicroBatch& alone : share) {
    std::string found = first_not_finite_of(executor, alone, micro_batch++);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace teratron

#include "executor/memory_choices.h"

#include <algorithm>
#include <sstream>

#include "base/host/resources.h"
#include "executor/device_memory.h"

namespace teratron {
namespace {

constexpr std::int64_t kMostRows = 8192;

// Ranks of the mesh whose back ends take their memory from the same device, this one included.
std::int64_t ranks_that_share(const Mesh& mesh, const Backend& backend) {
  const std::string own = backend.memory_name();
  std::string of_model;
  for (const std::string& name : mesh.model->all_gather_host(own)) of_model += name + '\n';
  std::int64_t count = 0;
  for (const std::string& names : mesh.data->all_gather_host(of_model)) {
    std::istringstream lines(names);
    for (std::string name; std::getline(lines, name);) count += name == own ? 1 : 0;
  }
  return count;
}

std::int64_t least_of_ranks(const Mesh& mesh, std::int64_t own) {
  double least = -static_cast<double>(own);
  for (Communicator* const group : {mesh.model.get(), mesh.data.get()}) {
    group->all_reduce_host({&least, 1}, ReduceOp::kMax);
  }
  return static_cast<std::int64_t>(-least);
}

// The largest number up to `most` that fits, where smaller ones fit, too; 0 without a trial.
template <class Fits>
std::int64_t largest_that_fits(std::int64_t most, const Fits& fits) {
  if (fits(most)) return most;
  std::int64_t least = 0;
  while (most - least > 1) {
    const std::int64_t middle = least + (most - least) / 2;
    (fits(middle) ? least : most) = middle;
  }
  return least;
}

void choose_packed_weights(Model& model, ExecutorOptions& options, const Mesh& mesh, const Backend& backend) {
  if (!options.packed_weights || !options.packed_weights->as_memory_allows) return;
  const std::int64_t ranks = ranks_that_share(mesh, backend);
  const std::optional<std::int64_t> left = available_host_memory();
  if (!left) return;
  const StagePlan plan(model, options, mesh.coordinates(), backend.compute_dtype());
  if (plan.memory().arena().bytes() > *left / ranks / 10 * 9) options.packed_weights.reset();
}

}  // namespace

void choose_by_memory(Model& model, ExecutorOptions& options, const Mesh& mesh, Backend& backend) {
  const bool is_host = backend.is_host_memory(), keeps_by_memory = !options.kept_layers;
  const bool makes_all_again = options.recompute.uniform().value_or(Recompute::kNone) != Recompute::kNone;
  const bool may_keep = keeps_by_memory && !is_host && options.trains() && !makes_all_again;  // on some stage
  if (keeps_by_memory) options.kept_layers = 0;
  if (options.logits_chunk == 0 && is_host) {
    options.logits_chunk = (size_of(backend.compute_dtype()) == 2 ? 2 : 1) * kFewestRowsOfLogits;
  }
  if (is_host) choose_packed_weights(model, options, mesh, backend);
  if (options.logits_chunk != 0 && !may_keep) return;
  const std::int64_t share = backend.bytes_left() / ranks_that_share(mesh, backend);
  const auto fits = [&](const ExecutorOptions& tried) {
    const StagePlan plan(model, tried, mesh.coordinates(), backend.compute_dtype());
    const DeviceMemory beside = device_memory_of(plan, backend.compute_dtype(), backend.captures_graphs());
    return plan.memory().arena().bytes() + beside.bytes() <= share / 10 * 9;
  };
  if (options.logits_chunk == 0) {
    ExecutorOptions tried = options;
    tried.logits_chunk = kMostRows;
    while (tried.logits_chunk > kFewestRowsOfLogits && !fits(tried)) tried.logits_chunk /= 2;
    options.logits_chunk = least_of_ranks(mesh, tried.logits_chunk);
  }
  if (!may_keep || options.recompute.of(mesh.coordinates().pipeline.rank).is_whole()) return;
  const StagePlan plan(model, options, mesh.coordinates(), backend.compute_dtype());
  std::int64_t most = 0;
  for (int chunk = 0; chunk < plan.cells().chunks(); ++chunk) {
    most = std::max<std::int64_t>(most, plan.cells().layers(chunk));
  }
  options.kept_layers = largest_that_fits(most, [&](std::int64_t layers) {
    ExecutorOptions tried = options;
    tried.kept_layers = layers;
    return fits(tried);
  });
}

}  // namespace teratron

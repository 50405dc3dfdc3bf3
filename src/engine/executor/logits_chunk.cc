#include "executor/logits_chunk.h"

#include <algorithm>
#include <sstream>

#include "executor/stage/stage_plan.h"

namespace teratron {
namespace {

constexpr std::int64_t kMost = 8192, kLeast = kFewestRowsOfLogits;

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

}  // namespace

std::int64_t choose_logits_chunk(Model& model, const ExecutorOptions& options, const Mesh& mesh, Backend& backend) {
  if (options.logits_chunk != 0) return options.logits_chunk;
  if (backend.is_host_memory()) return size_of(backend.compute_dtype()) == 2 ? 2 * kLeast : kLeast;
  const std::int64_t share = backend.bytes_left() / ranks_that_share(mesh, backend);
  ExecutorOptions tried = options;
  const auto fits = [&](std::int64_t rows) {
    tried.logits_chunk = rows;
    return StagePlan(model, tried, mesh.coordinates(), backend.compute_dtype()).memory().arena().bytes() <=
           share / 10 * 9;
  };
  std::int64_t rows = kMost;
  while (rows > kLeast && !fits(rows)) rows /= 2;
  double least = -static_cast<double>(rows);
  for (Communicator* const group : {mesh.model.get(), mesh.data.get()}) {
    group->all_reduce_host({&least, 1}, ReduceOp::kMax);
  }
  return static_cast<std::int64_t>(-least);
}

}  // namespace teratron

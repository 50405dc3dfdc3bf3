#include "runtime/run_comparison.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "checkpoint/native/folders.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

std::vector<std::int64_t> common_iterations(const fs::path& a, const fs::path& b) {
  const std::vector<std::int64_t> of_a = iterations_in(a), of_b = iterations_in(b);
  std::vector<std::int64_t> common;
  std::ranges::set_intersection(of_a, of_b, std::back_inserter(common));
  return common;
}

TensorComparison compare_models(const fs::path& a, const fs::path& b, double tolerance) {
  return compare(*open_tensors_of(a), *open_tensors_of(b), tolerance);
}

void compare_checkpoints(const fs::path& a, const fs::path& b, double tolerance, RunComparison& comparison) {
  for (const std::int64_t iteration : common_iterations(a, b)) {
    if (comparison.tensors) comparison.equal_checkpoints.push_back(*comparison.checkpoint);
    comparison.checkpoint = iteration;
    comparison.tensors = compare_models(iteration_folder(a, iteration), iteration_folder(b, iteration), tolerance);
    if (!comparison.tensors->equal()) return;
  }
}

fs::path log_in(const fs::path& run) { return run / "metrics.jsonl"; }

bool is_run(const fs::path& path) { return fs::exists(log_in(path)) || !iterations_in(path).empty(); }

}  // namespace

RunComparison compare_runs(const fs::path& a, const fs::path& b, double tolerance) {
  for (const fs::path& path : {a, b}) {
    if (!fs::exists(path)) throw_user_error("there is no '{}'", path.string());
  }
  RunComparison comparison;
  if (!is_run(a) || !is_run(b)) {
    comparison.tensors = compare_models(a, b, tolerance);
    return comparison;
  }
  if (fs::exists(log_in(a)) && fs::exists(log_in(b))) comparison.log = compare_metrics(log_in(a), log_in(b), tolerance);
  compare_checkpoints(a, b, tolerance, comparison);
  if (!comparison.tensors && (!comparison.log || comparison.log->lines == 0)) {
    throw_user_error("'{}' and '{}' have no update and no checkpoint in common; name one checkpoint of each",
                     a.string(), b.string());
  }
  return comparison;
}

}  // namespace teratron

#include "plan/search/pipeline_choice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/host/threads.h"
#include "console/readable.h"
#include "plan/search/memory_wall.h"

namespace teratron::plan {
namespace {

std::string pipeline_text(const Layout& layout) {
  const std::string text = layout.pipeline_text();
  return text.empty() ? "sequences whole" : text;
}

// Fixes all of a layout but its pipeline.
void fix_mesh(FixedLayout& fixed, const Layout& layout) {
  fixed.tensor = layout.tensor;
  fixed.pipeline = layout.pipeline;
  fixed.data = layout.data;
  fixed.micro_batch = layout.micro_batch;
  fixed.sequence_parallel = layout.sequence_parallel;
  fixed.distributed_optimizer = layout.distributed_optimizer;
}

std::string fullest_text(const PlannedLayout& one) {
  return readable_bytes(static_cast<std::uint64_t>(std::ranges::max(one.memory)));
}

}  // namespace

PlanRequest pipeline_request(const TrainConfig& config, const GivenPipeline& given, const Cluster& cluster,
                             std::int64_t vocab_size) {
  if (config.pipeline.cuts_by_documents()) {
    throw_user_error(
        "{} auto compares pipelines that cut all sequences alike, and --token-slices {} goes by their documents; give "
        "{} with it",
        given.is_auto ? "--schedule" : "--pipeline-layout", config.pipeline.token_slices,
        given.is_auto ? "--schedule, such as seq1f1b," : "--pipeline-layout L,L,..");
  }
  PlanRequest request{.config = config, .cluster = cluster, .vocab_size = vocab_size};
  request.config.batch.global_batch_size = config.largest_batch();
  if (!given.layout) request.config.pipeline.layout.clear();
  const Layout layout = layout_of(config);
  FixedLayout& fixed = request.fixed;
  fix_mesh(fixed, layout);
  const bool fixes_all = !given.is_auto;
  const bool has_slices = given.token_slices || (fixes_all && !config.pipeline.chooses_slices());
  if (fixes_all) fixed.schedule = layout.schedule;
  fixed.keeps_layers = given.layout;
  if (fixes_all || given.virtual_stages) fixed.virtual_stages = layout.virtual_stages;
  if (has_slices) fixed.slicing = layout.slicing;
  if (fixes_all || given.defer_weight_gradients) fixed.defer_weight_gradients = layout.defer_weight_gradients;
  if (fixes_all || given.vocabulary_parallel) fixed.vocabulary_parallel = layout.vocabulary_parallel;
  if (fixes_all || given.recompute) fixed.recompute = layout.recompute;
  return request;
}

SearchResult choose_pipeline(const PlanRequest& request, std::size_t runners_up) {
  SearchResult result = search_layouts(request, runners_up);
  if (result.best.empty()) throw_too_large(request, result);
  return result;
}

void choose_pipelines(const PlanRequest& request, SearchResult& result) {
  if (request.fixed.has_mesh() || (request.fixed.slicing && request.fixed.slicing->open == Slicing::Open::kJoint))
    return;
  std::vector<SearchResult> of_meshes(result.best.size());
  parallel_for(std::ssize(of_meshes), 1, [&](std::int64_t mesh, std::int64_t) {
    const PlannedLayout& one = result.best[static_cast<std::size_t>(mesh)];
    PlanRequest of_mesh = request;
    fix_mesh(of_mesh.fixed, one.layout);
    of_meshes[static_cast<std::size_t>(mesh)] = search_from(of_mesh, one);
  });
  result.best.clear();
  for (SearchResult& chosen : of_meshes) {
    result.layouts += chosen.layouts;
    result.too_large += chosen.too_large;
    result.simulated += chosen.simulated;
    result.planned += chosen.planned;
    result.best.push_back(std::move(chosen.best.front()));
  }
  std::ranges::stable_sort(result.best, {}, [](const PlannedLayout& one) { return one.time.seconds; });
}

std::string text_of_choice(const SearchResult& result) {
  const PlannedLayout& best = result.best.front();
  std::string text =
      fmt::format("chosen, of {} ways to run the pipeline ({} simulated): {}; expected: {:.4g} s an update, {}",
                  result.layouts, result.simulated, pipeline_text(best.layout), best.time.seconds, fullest_text(best));
  for (const PlannedLayout& other : result.best) {
    if (&other == &best) continue;
    text += fmt::format("\n  instead: {}: {:.4g} s (+{:.1f} %), {}", pipeline_text(other.layout), other.time.seconds,
                        100 * (other.time.seconds / best.time.seconds - 1), fullest_text(other));
  }
  return text;
}

}  // namespace teratron::plan

// Zero-bubble pipelines (arXiv 2401.10241) beside Megatron-LM's schedules, on A100. ZB-1p is 1F1B whose weight
// gradients wait for bubbles, within 1F1B's memory.
#include <fmt/ranges.h>

#include <vector>

#include "cluster/cluster_file.h"
#include "plan/costs/step_time.h"
#include "plan/reproduction/judgement.h"
#include "plan/reproduction/published_gpt.h"
#include "plan/reproduction/reproduction.h"
#include "plan/reproduction/zero_bubble_published.h"

namespace teratron::plan {
namespace zero_bubble {
namespace {

constexpr std::int64_t kWords = 50257;  // GPT-2's; the paper does not say

Cluster papers_cluster(std::int64_t devices) {
  Cluster cluster = find_cluster("dgx-a100", devices);
  cluster.constants.push_back({"writes_scores", 1, "the published memory has them"});
  cluster.constants.push_back({"score_passes", 3, "a product writes them, a fused softmax reads and writes them"});
  return cluster;
}

TrainConfig config_of(const Run& run) {
  const Model& model = run.model;
  return plan::config_of({.layers = model.layers,
                          .hidden = model.hidden,
                          .heads = model.heads,
                          .vocabulary = kWords,
                          .tokens = kTokens,
                          .tensor = 1,
                          .stages = model.stages},
                         model.micro_batch, run.micro_batches);
}

// Layers of so many cells of equal weight, where the ends have one fewer.
std::string layers_of(const Model& model, std::int64_t cells) {
  std::vector<std::int64_t> layers(static_cast<std::size_t>(cells), (model.layers + 2) / cells);
  --layers.front();
  --layers.back();
  return fmt::format("{}", fmt::join(layers, ","));
}

double rate_of(const TrainConfig& config, const Cluster& cluster) {
  return predict_step(config, cluster, kWords).tokens_per_second / static_cast<double>(kTokens * cluster.devices);
}

constexpr const char* kMessages =
    "the paper says that interleaving costs its runs messages; here they run beside the passes";

void add(const Run& run, std::vector<ReproducedCell>& cells) {
  const Model& model = run.model;
  const Cluster cluster = papers_cluster(model.stages), teratrons = find_cluster("dgx-a100", model.stages);
  TrainConfig whole = config_of(run);
  whole.pipeline.layout = layers_of(model, model.stages);
  TrainConfig interleaved = config_of(run), one_p = whole;
  interleaved.pipeline.schedule = pipeline::ScheduleKind::kInterleaved;
  interleaved.pipeline.virtual_stages = (model.layers + 2) / model.stages;
  interleaved.pipeline.layout = layers_of(model, model.layers + 2);
  one_p.pipeline.defer_weight_gradients = true;
  const auto cell = [&](const char* name, double published, const TrainConfig& config) {
    return ReproducedCell{
        .table = fmt::format("{} on {} GPUs, {} micro-batches", model.name, model.stages, run.micro_batches),
        .name = name,
        .unit = "sequences/s",
        .source = "Table 4",
        .published = published,
        .ours = rate_of(config, cluster),
        .teratron = rate_of(config, teratrons)};
  };
  const ReproducedCell base = cell("1F1B", run.whole, whole);
  cells.push_back(base);
  for (const ReproducedCell& other : {cell("1F1B-I", run.interleaved, interleaved), cell("ZB-1p", run.one_p, one_p)}) {
    cells.push_back(other);
    ReproducedCell gain = ratio_of(other, base);
    if (gain.ours > gain.published && !is_met(gain)) gain.cause = kMessages;
    cells.push_back(gain);
  }
}

}  // namespace
}  // namespace zero_bubble

Reproduction reproduce_zero_bubble() {
  Reproduction result{.title =
                          "Zero-bubble pipelines on A100 (arXiv 2401.10241, Table 4; left out: ZB-2p, which holds "
                          "twice the activations, and memory)"};
  for (const zero_bubble::Run& run : zero_bubble::kRuns) zero_bubble::add(run, result.cells);
  result.fitted = fitted_constants(zero_bubble::papers_cluster(zero_bubble::kModels[0].stages));
  return result;
}

}  // namespace teratron::plan

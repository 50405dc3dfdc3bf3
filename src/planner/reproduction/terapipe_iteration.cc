#include "reproduction/terapipe_iteration.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "cluster/cluster_file.h"
#include "plan/costs/rank_parameters.h"
#include "plan/costs/step_time.h"
#include "reproduction/reproduction.h"
#include "slicing/slicer.h"

namespace teratron::plan::terapipe {
namespace {

constexpr std::int64_t kGranularity = 8;  // tokens between the boundaries that the paper's slicer may cut at

Cluster cluster_of(const TrainConfig& setting, const std::string& preset) {
  return find_cluster(preset, std::max<std::int64_t>(8, setting.layout.mesh().ranks()));
}

// Micro-batches of a copy of the model.
int micro_batches_of(const TrainConfig& setting) {
  return static_cast<int>(setting.largest_batch() / (setting.layout.data_parallel * setting.batch.micro_batch_size));
}

double layers_of_stage(const TrainConfig& setting) {
  const std::int64_t layers = setting.model.config.num_layers / setting.layout.pipeline_parallel;
  return static_cast<double>(layers);
}

// `milliseconds`: of a slice in a stage, forward and backward.
std::vector<std::int64_t> sliced_by(const TrainConfig& setting,
                                    const std::function<double(const Slice&)>& milliseconds) {
  const slicing::CostTable table(
      setting.model.seq_length, kGranularity, [&](std::int64_t length, std::int64_t context) {
        return milliseconds({.sequences = setting.batch.micro_batch_size, .tokens = length, .context = context});
      });
  return slicing::best_slicing(table, {.stages = static_cast<int>(setting.layout.pipeline_parallel),
                                       .micro_batches = micro_batches_of(setting)})
      .lengths;
}

class PapersIteration : public Iteration {
 public:
  PapersIteration(const TrainConfig& setting, const std::string& cluster)
      : setting_(setting),
        cluster_(cluster_of(setting, cluster)),
        costs_(setting.model.config, {.tensor = setting.layout.tensor_parallel}, cluster_) {}

  double seconds(const std::vector<std::int64_t>& lengths) const override {
    const LayoutSettings& layout = setting_.layout;
    const auto stages = static_cast<int>(layout.pipeline_parallel), slices = static_cast<int>(lengths.size());
    const auto kind = slices == 1 ? pipeline::ScheduleKind::kGpipe : pipeline::ScheduleKind::kTeraPipe;
    simulation::PipelineWork work{
        .schedule = pipeline::make_schedule(
            kind, {.stages = stages, .micro_batches = micro_batches_of(setting_), .slices = slices}),
        .tensor = layout.tensor_parallel,
        .data = layout.data_parallel,
        .gradient_pieces = 0};
    for (int stage = 0; stage < stages; ++stage) add_stage(work, stage, lengths);
    work.costs.transfers.assign(lengths.size(), 0);
    return simulation::simulate(work, cluster_).seconds;
  }

  // The stage that sends to another host takes longest.
  std::vector<std::int64_t> best_slices() const override {
    return sliced_by(setting_, [&](const Slice& slice) {
      const pipeline::PassTimes times = costs_.layer(slice).times(layers_of_stage(setting_));
      const LinkLevel& link = cluster_.links.back();
      return times.forward + times.backward + 2 * 1e3 * (link.latency + bytes(slice.tokens) / link.bandwidth);
    });
  }

 private:
  void add_stage(simulation::PipelineWork& work, int stage, const std::vector<std::int64_t>& lengths) const {
    const LayoutSettings& layout = setting_.layout;
    const double layers = layers_of_stage(setting_);
    std::vector<pipeline::PassTimes> columns;
    Slice slice{.sequences = setting_.batch.micro_batch_size};
    for (const std::int64_t length : lengths) {
      slice.tokens = length;
      pipeline::PassTimes times = costs_.layer(slice).times(layers);
      times.forward += message(stage, stage + 1, length);
      times.backward += message(stage, stage - 1, length);
      columns.push_back(times);
      slice.context += length;
    }
    work.costs.passes.push_back(std::move(columns));
    const CollectiveGroup copies{stage * layout.tensor_parallel, layout.data_parallel,
                                 layout.tensor_parallel * layout.pipeline_parallel};
    const double parameters = layers * rank_parameters(setting_.model.config, layout.tensor_parallel).layer;
    work.gradient_bytes.push_back(bytes_on_links(cluster_, copies, parameters * constants_of(cluster_).gradient_bytes));
    work.update_seconds.push_back(costs_.update_seconds(parameters));
  }

  double bytes(std::int64_t length) const {
    return 2 * static_cast<double>(setting_.batch.micro_batch_size * length * setting_.model.config.hidden_size);
  }
  // Milliseconds; 0 beyond the pipeline's ends.
  double message(int from, int to, std::int64_t length) const {
    const std::int64_t tensor = setting_.layout.tensor_parallel;
    if (to < 0 || to >= setting_.layout.pipeline_parallel) return 0;
    return 1e3 * message_seconds(cluster_, from * tensor, to * tensor, bytes(length));
  }

  const TrainConfig setting_;
  const Cluster cluster_;
  const ModelCosts costs_;
};

class TeratronsIteration : public Iteration {
 public:
  TeratronsIteration(const TrainConfig& setting, const std::string& cluster)
      : setting_(setting),
        cluster_(run_by_teratron(cluster_of(setting, cluster))),
        costs_(setting.model.config, {.tensor = setting.layout.tensor_parallel}, cluster_) {}

  double seconds(const std::vector<std::int64_t>& lengths) const override {
    const bool is_sliced = lengths.size() > 1;
    TrainConfig config = setting_;
    config.pipeline.schedule = is_sliced ? pipeline::ScheduleKind::kTeraPipe : pipeline::ScheduleKind::kGpipe;
    config.pipeline.token_slices = is_sliced ? fmt::format("{}", fmt::join(lengths, ",")) : "";
    return predict_step(config, cluster_, config.model.config.vocab_size).seconds;
  }

  // Messages are beside the passes, so a stage's time has the gathers alone.
  std::vector<std::int64_t> best_slices() const override {
    return sliced_by(setting_, [&](const Slice& slice) {
      const pipeline::PassTimes times = costs_.layer(slice).times(layers_of_stage(setting_));
      return times.forward + times.backward + 2 * costs_.gather_after_message(slice);
    });
  }

 private:
  const TrainConfig setting_;
  const Cluster cluster_;
  const ModelCosts costs_;
};

}  // namespace

std::unique_ptr<Iteration> papers_iteration(const TrainConfig& setting, const std::string& cluster) {
  return std::make_unique<PapersIteration>(setting, cluster);
}

std::unique_ptr<Iteration> teratrons_iteration(const TrainConfig& setting, const std::string& cluster) {
  return std::make_unique<TeratronsIteration>(setting, cluster);
}

}  // namespace teratron::plan::terapipe

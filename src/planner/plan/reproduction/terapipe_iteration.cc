#include "plan/reproduction/terapipe_iteration.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "cluster/cluster_file.h"
#include "model/presets.h"
#include "plan/costs/rank_parameters.h"
#include "plan/costs/step_time.h"
#include "plan/reproduction/reproduction.h"
#include "slicing/slicer.h"

namespace teratron::plan::terapipe {
namespace {

constexpr std::int64_t kWords = 50257;  // GPT-3's, of Teratron's embedding and head

ModelConfig model_of(const Setting& setting) {
  const ModelPreset& preset = find_model_preset(setting.preset);
  ModelConfig model;
  model.num_layers = preset.num_layers;
  model.hidden_size = preset.hidden_size;
  model.num_attention_heads = preset.num_attention_heads;
  model.vocab_size = kWords;
  return model;
}

Cluster cluster_of(const Setting& setting) {
  return find_cluster("p3.16xlarge", std::max<std::int64_t>(8, setting.stages * setting.tensor * setting.data));
}

// `milliseconds`: of a slice in a stage, forward and backward.
std::vector<std::int64_t> sliced_by(const Setting& setting, const Batch& batch,
                                    const std::function<double(const Slice&)>& milliseconds) {
  const slicing::CostTable table(batch.tokens, kGranularity, [&](std::int64_t length, std::int64_t context) {
    return milliseconds({.sequences = batch.together, .tokens = length, .context = context});
  });
  return slicing::best_slicing(table, {.stages = static_cast<int>(setting.stages),
                                       .micro_batches = static_cast<int>(batch.micro_batches())})
      .lengths;
}

class PapersIteration : public Iteration {
 public:
  PapersIteration(const Setting& setting, const Batch& batch)
      : setting_(setting),
        batch_(batch),
        model_(model_of(setting)),
        cluster_(cluster_of(setting)),
        costs_(model_, {.tensor = setting.tensor}, cluster_),
        layers_(model_.num_layers / setting.stages) {}

  double seconds(const std::vector<std::int64_t>& lengths) const override {
    const auto stages = static_cast<int>(setting_.stages), slices = static_cast<int>(lengths.size());
    const auto kind = slices == 1 ? pipeline::ScheduleKind::kGpipe : pipeline::ScheduleKind::kTeraPipe;
    simulation::PipelineWork work{
        .schedule = pipeline::make_schedule(
            kind, {.stages = stages, .micro_batches = static_cast<int>(batch_.micro_batches()), .slices = slices}),
        .tensor = setting_.tensor,
        .data = setting_.data,
        .gradient_pieces = 0};
    for (int stage = 0; stage < stages; ++stage) add_stage(work, stage, lengths);
    work.costs.transfers.assign(lengths.size(), 0);
    return simulation::simulate(work, cluster_).seconds;
  }

  // The stage that sends to another host takes longest.
  std::vector<std::int64_t> best_slices() const override {
    return sliced_by(setting_, batch_, [&](const Slice& slice) {
      const pipeline::PassTimes times = costs_.layer(slice).times(static_cast<double>(layers_));
      const LinkLevel& link = cluster_.links.back();
      return times.forward + times.backward + 2 * 1e3 * (link.latency + bytes(slice.tokens) / link.bandwidth);
    });
  }

 private:
  void add_stage(simulation::PipelineWork& work, int stage, const std::vector<std::int64_t>& lengths) const {
    std::vector<pipeline::PassTimes> columns;
    Slice slice{.sequences = batch_.together};
    for (const std::int64_t length : lengths) {
      slice.tokens = length;
      pipeline::PassTimes times = costs_.layer(slice).times(static_cast<double>(layers_));
      times.forward += message(stage, stage + 1, length);
      times.backward += message(stage, stage - 1, length);
      columns.push_back(times);
      slice.context += length;
    }
    work.costs.passes.push_back(std::move(columns));
    const CollectiveGroup copies{stage * setting_.tensor, setting_.data, setting_.tensor * setting_.stages};
    const double parameters = static_cast<double>(layers_) * rank_parameters(model_, setting_.tensor).layer;
    work.gradient_bytes.push_back(bytes_on_links(cluster_, copies, parameters * constants_of(cluster_).gradient_bytes));
    work.update_seconds.push_back(costs_.update_seconds(parameters));
  }

  double bytes(std::int64_t length) const {
    return 2 * static_cast<double>(batch_.together * length * model_.hidden_size);
  }
  // Milliseconds; 0 beyond the pipeline's ends.
  double message(int from, int to, std::int64_t length) const {
    if (to < 0 || to >= setting_.stages) return 0;
    return 1e3 * message_seconds(cluster_, from * setting_.tensor, to * setting_.tensor, bytes(length));
  }

  const Setting& setting_;
  const Batch batch_;
  const ModelConfig model_;
  const Cluster cluster_;
  const ModelCosts costs_;
  const std::int64_t layers_;
};

class TeratronsIteration : public Iteration {
 public:
  TeratronsIteration(const Setting& setting, const Batch& batch)
      : setting_(setting),
        batch_(batch),
        cluster_(run_by_teratron(cluster_of(setting))),
        costs_(model_of(setting), {.tensor = setting.tensor}, cluster_) {}

  double seconds(const std::vector<std::int64_t>& lengths) const override {
    TrainConfig config;
    config.model.config = model_of(setting_);
    config.model.config.max_position_embeddings = batch_.tokens;
    config.model.seq_length = batch_.tokens;
    config.batch.micro_batch_size = batch_.together;
    config.batch.global_batch_size = batch_.sequences * setting_.data;
    config.layout.tensor_parallel = setting_.tensor;
    config.layout.pipeline_parallel = setting_.stages;
    config.layout.data_parallel = setting_.data;
    config.backend.fp16 = true;
    config.pipeline.schedule = pipeline::ScheduleKind::kGpipe;
    if (lengths.size() > 1) {
      config.pipeline.schedule = pipeline::ScheduleKind::kTeraPipe;
      config.pipeline.token_slices = fmt::format("{}", fmt::join(lengths, ","));
    }
    return predict_step(config, cluster_, kWords).seconds;
  }

  // Messages are beside the passes, so a stage's time has the gathers alone.
  std::vector<std::int64_t> best_slices() const override {
    const double layers = static_cast<double>(model_of(setting_).num_layers) / static_cast<double>(setting_.stages);
    return sliced_by(setting_, batch_, [&](const Slice& slice) {
      const pipeline::PassTimes times = costs_.layer(slice).times(layers);
      return times.forward + times.backward + 2 * costs_.gather_after_message(slice);
    });
  }

 private:
  const Setting& setting_;
  const Batch batch_;
  const Cluster cluster_;
  const ModelCosts costs_;
};

}  // namespace

std::unique_ptr<Iteration> papers_iteration(const Setting& setting, const Batch& batch) {
  return std::make_unique<PapersIteration>(setting, batch);
}

std::unique_ptr<Iteration> teratrons_iteration(const Setting& setting, const Batch& batch) {
  return std::make_unique<TeratronsIteration>(setting, batch);
}

}  // namespace teratron::plan::terapipe

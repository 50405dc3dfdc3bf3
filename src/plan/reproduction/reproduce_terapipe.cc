// TeraPipe (arXiv 2102.07988): Figure 5 (ten settings with and without slicing), Figure 6 (against even slices) and
// Figure 7 (longer sequences). Layers alone, as the paper's program has them. A stage sends what it has made before it
// goes on, once for its tensor-parallel ranks, as the program does; gradients are summed after the last pass.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cluster/cluster_file.h"
#include "pipeline/token_slices.h"
#include "plan/costs/step_time.h"
#include "plan/reproduction/reproduction.h"
#include "slicing/slicer.h"

namespace teratron::plan {
namespace {

struct Setting {
  int number;
  const char* preset;
  std::int64_t stages, tensor, data, sequences;  // of a copy
  double whole, sliced;                          // published seconds
  bool is_fitted;
};

constexpr Setting kSettings[] = {
    {1, "gpt3-1B", 24, 1, 8, 16, 1.517, 1.254, true},  {2, "gpt3-1B", 12, 8, 2, 36, 1.018, 1.018, false},
    {3, "gpt3-1B", 24, 8, 1, 72, 0.913, 0.913, false}, {4, "gpt3-13B", 20, 8, 2, 16, 2.637, 1.891, false},
    {5, "gpt3-13B", 40, 8, 1, 32, 1.863, 1.328, true}, {6, "gpt3-44B", 96, 1, 4, 2, 13.319, 7.103, true},
    {7, "gpt3-44B", 24, 8, 2, 4, 4.311, 2.771, false}, {8, "gpt3-44B", 48, 8, 1, 8, 2.662, 1.111, true},
    {9, "gpt3-175B", 96, 4, 1, 2, 9.990, 1.481, true}, {10, "gpt3-175B", 48, 8, 1, 2, 5.822, 1.160, false},
};
constexpr std::int64_t kTokens = 2048;
constexpr std::int64_t kGranularity = 8;  // tokens; the paper's

constexpr const char* kTwoCopies =
    "read off a second source; the two times differ by 0.746 s, so a slot of two layers would take 78 ms at least (35 "
    "slots against 51 of half of it or more), but one of a layer with its messages takes 26 ms in setting 5";
constexpr const char* kTwoCopiesOf1B =
    "read off a second source; it needs 19 ms a slot, but one of setting 3 takes 9.6 ms, of which 5.4 are on the wire, "
    "so with a second layer 14 ms";

class Study {
 public:
  Study(const Setting& setting, std::int64_t tokens)
      : setting_(setting),
        tokens_(tokens),
        model_(model_of(setting)),
        cluster_(
            find_cluster("p3.16xlarge", std::max<std::int64_t>(8, setting.stages * setting.tensor * setting.data))),
        costs_(model_, {.tensor = setting.tensor}, cluster_),
        layers_(model_.num_layers / setting.stages) {}

  // Of the whole iteration, with the sequences one at a time cut like this.
  double seconds(const std::vector<std::int64_t>& lengths) const {
    const auto stages = static_cast<int>(setting_.stages), slices = static_cast<int>(lengths.size());
    const auto kind = slices == 1 ? pipeline::ScheduleKind::kGpipe : pipeline::ScheduleKind::kTeraPipe;
    simulation::PipelineWork work{
        .schedule = pipeline::make_schedule(
            kind, {.stages = stages, .micro_batches = static_cast<int>(setting_.sequences), .slices = slices}),
        .tensor = setting_.tensor,
        .data = setting_.data,
        .gradient_pieces = 0};
    const double parameters = static_cast<double>(layers_) * layer_parameters(model_, setting_.tensor);
    for (int stage = 0; stage < stages; ++stage) {
      std::vector<pipeline::PassTimes> columns;
      Slice slice;
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
      const double bytes = parameters * constants_of(cluster_).gradient_bytes;
      work.gradient_bytes.push_back(bytes_on_links(cluster_, copies, bytes));
      work.update_seconds.push_back(costs_.update_seconds(parameters));
    }
    work.costs.transfers.assign(lengths.size(), 0);
    return simulation::simulate(work, cluster_).seconds;
  }

  // Algorithm 1 on the costs of a stage that sends to another host.
  std::vector<std::int64_t> best_slices() const {
    const slicing::CostTable table(tokens_, kGranularity, [&](std::int64_t length, std::int64_t context) {
      const pipeline::PassTimes times =
          costs_.layer({.tokens = length, .context = context}).times(static_cast<double>(layers_));
      return times.forward + times.backward + 2 * slowest_message(length);
    });
    return slicing::best_slicing(table, {.stages = static_cast<int>(setting_.stages),
                                         .micro_batches = static_cast<int>(setting_.sequences)})
        .lengths;
  }

 private:
  static ModelConfig model_of(const Setting& setting) {
    const ModelPreset& preset = find_model_preset(setting.preset);
    ModelConfig model;
    model.num_layers = preset.num_layers;
    model.hidden_size = preset.hidden_size;
    model.num_attention_heads = preset.num_attention_heads;
    return model;
  }
  double bytes(std::int64_t length) const { return 2 * static_cast<double>(length * model_.hidden_size); }
  // Milliseconds; 0 beyond the pipeline's ends.
  double message(int from, int to, std::int64_t length) const {
    if (to < 0 || to >= setting_.stages) return 0;
    return 1e3 * message_seconds(cluster_, from * setting_.tensor, to * setting_.tensor, bytes(length));
  }
  double slowest_message(std::int64_t length) const {
    const LinkLevel& link = cluster_.links.back();
    return 1e3 * (link.latency + bytes(length) / link.bandwidth);
  }

  const Setting& setting_;
  std::int64_t tokens_;
  ModelConfig model_;
  Cluster cluster_;
  ModelCosts costs_;
  std::int64_t layers_;
};

std::string cause_of(const Setting& setting) {
  return setting.number == 2 ? kTwoCopiesOf1B : setting.number == 4 ? kTwoCopies : "";
}

void add_settings(std::vector<ReproducedCell>& cells) {
  for (const Setting& setting : kSettings) {
    const Study study(setting, kTokens);
    const std::string name = fmt::format("setting {}", setting.number);
    const std::vector<std::int64_t> slices = study.best_slices();
    cells.push_back({"Figure 5 without slices, " + name, "s", setting.whole, study.seconds({kTokens}),
                     setting.is_fitted, cause_of(setting)});
    cells.push_back({"Figure 5 with slices, " + name, "s", setting.sliced, study.seconds(slices), setting.is_fitted,
                     cause_of(setting), "", slices});
  }
}

// How much longer the best even slices take than the slicer's.
void add_ablation(std::vector<ReproducedCell>& cells) {
  struct Ablation {
    const Setting& setting;
    int most;
    double published;
  };
  for (const Ablation& ablation : {Ablation{kSettings[7], 16, 1.12}, Ablation{kSettings[8], 128, 1.04}}) {
    const Study study(ablation.setting, kTokens);
    double even = study.seconds({kTokens});
    for (int slices = 2; slices <= ablation.most; slices *= 2) {
      even = std::min(even, study.seconds(pipeline::even_slices(kTokens, slices)));
    }
    cells.push_back({fmt::format("Figure 6: the best even slices beside ours, setting {} (1..{})",
                                 ablation.setting.number, ablation.most),
                     "x", ablation.published, even / study.seconds(study.best_slices())});
  }
}

void add_long_sequences(std::vector<ReproducedCell>& cells) {
  struct Length {
    std::int64_t tokens, sequences;
    double whole, sliced;
  };
  constexpr Length kLengths[] = {{4096, 8, 2.526, 0.913}, {6144, 4, 3.754, 0.756}, {8192, 2, 4.978, 0.636}};
  for (const Length& length : kLengths) {
    Setting setting = kSettings[4];
    setting.sequences = length.sequences;
    const Study study(setting, length.tokens);
    const std::string name = fmt::format("{} tokens", length.tokens);
    const std::vector<std::int64_t> slices = study.best_slices();
    cells.push_back({"Figure 7 without slices, " + name, "s", length.whole, study.seconds({length.tokens})});
    cells.push_back(
        {"Figure 7 with slices, " + name, "s", length.sliced, study.seconds(slices), false, "", "", slices});
  }
}

// Settings of one model, by seconds a sequence. cells: as add_settings() left them.
RankedPairs ranked_pairs(const std::vector<ReproducedCell>& cells) {
  struct Plan {
    const ReproducedCell* cell;
    const char* preset;
    double published, ours;
  };
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < std::size(kSettings); ++i) {
    const Setting& setting = kSettings[i];
    const auto sequences = static_cast<double>(setting.sequences * setting.data);
    for (const ReproducedCell* cell : {&cells[2 * i], &cells[2 * i + 1]}) {
      plans.push_back({cell, setting.preset, cell->published / sequences, cell->ours / sequences});
    }
  }
  RankedPairs result;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (std::size_t j = i + 1; j < plans.size(); ++j) {
      const Plan &a = plans[i], &b = plans[j];
      if (a.preset != b.preset || std::abs(a.published - b.published) <= 0.05 * std::min(a.published, b.published))
        continue;
      ++result.pairs;
      if ((a.published < b.published) != (a.ours < b.ours)) result.wrong.push_back(a.cell->name + " / " + b.cell->name);
    }
  }
  return result;
}

}  // namespace

Reproduction reproduce_terapipe() {
  Reproduction result{.title = "TeraPipe on p3.16xlarge (arXiv 2102.07988)"};
  add_settings(result.cells);
  result.ranking = ranked_pairs(result.cells);
  add_ablation(result.cells);
  add_long_sequences(result.cells);
  const Cluster cluster = find_cluster("p3.16xlarge", 16);
  for (const Constant& constant : all_constants(cluster)) {
    if (constant.from.find("fitted") != std::string::npos) result.fitted.push_back(constant);
  }
  result.fitted.push_back({"bandwidth of " + cluster.links[1].name, cluster.links[1].bandwidth, cluster.links[1].from});
  return result;
}

}  // namespace teratron::plan

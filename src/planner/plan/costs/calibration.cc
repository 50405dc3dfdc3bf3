#include "plan/costs/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"
#include "pipeline/generators.h"
#include "profile/step_times.h"

namespace teratron::plan {
namespace {

struct Shape {
  std::int64_t layers, hidden, heads, tokens, sequences, vocabulary;
  std::vector<std::int64_t> slices = {};  // empty: whole
};

const std::vector<Shape>& calibration_shapes() {
  static const std::vector<Shape> shapes = {
      {2, 64, 2, 64, 2, 512},
      {2, 64, 2, 256, 1, 512},
      {2, 128, 4, 64, 1, 512},
      {2, 128, 4, 128, 4, 512},
      {4, 128, 4, 128, 2, 2048},
      {2, 128, 4, 512, 1, 512},
      {2, 256, 4, 64, 2, 512},
      {2, 256, 4, 128, 4, 8192},
      {2, 256, 8, 256, 2, 512},
      {2, 384, 6, 128, 2, 512},
      {2, 512, 8, 128, 1, 512},
      {2, 512, 8, 64, 4, 512},
      {1, 128, 4, 256, 1, 512, {128, 128}},
      {2, 256, 4, 256, 1, 512, {96, 80, 80}},
      {2, 128, 2, 128, 8, 512},
      {2, 256, 4, 512, 1, 2048, {256, 256}},
      // Few rows, which tell what weights take by themselves.
      {4, 256, 4, 32, 1, 2048},
      {2, 512, 8, 32, 1, 512},
      {2, 256, 4, 64, 1, 8192, {32, 32}},
      {2, 96, 2, 64, 1, 8192},
  };
  return shapes;
}

struct Searched {
  std::string name;
  double value, least, most;
};

void set_constant(Cluster& cluster, const std::string& name, double value) {
  if (name == "link latency") {
    cluster.links.front().latency = value;
  } else {
    const auto found = std::ranges::find(cluster.constants, name, &Constant::name);
    Constant& constant = found == cluster.constants.end() ? cluster.constants.emplace_back() : *found;
    constant = {name, value, "measured by teratron profile"};
  }
}

// Calls use(predicted, measured).
using Use = std::function<void(double, double)>;
using Compare = void (*)(const Cluster&, const std::vector<CalibrationStep>&, const Use&);

void compare_passes(const Cluster& cluster, const std::vector<CalibrationStep>& steps, const Use& use) {
  for (const CalibrationStep& step : steps) {
    for (std::size_t slice = 0; slice < step.slices.size(); ++slice) {
      const pipeline::PassTimes times = predicted(step, cluster, slice);
      use(times.forward, step.passes[slice].forward);
      use(times.backward, step.passes[slice].backward);
    }
  }
}

void compare_updates(const Cluster& cluster, const std::vector<CalibrationStep>& steps, const Use& use) {
  for (const CalibrationStep& step : steps) {
    if (step.settings.tensor == 1) use(predicted_after(step, cluster), step.after);
  }
}

double objective(const Cluster& cluster, const std::vector<CalibrationStep>& steps, Compare compare) {
  double sum = 0;
  compare(cluster, steps, [&](double ours, double measured) {
    const double error = std::log(ours / measured);
    sum += error * error;
  });
  return sum;
}

// One value after the other by smaller and smaller factors, as long as that helps.
void search(Cluster& cluster, std::vector<Searched>& values, const std::vector<CalibrationStep>& steps,
            Compare compare) {
  for (const Searched& searched : values) set_constant(cluster, searched.name, searched.value);
  double best = objective(cluster, steps, compare);
  for (double factor = 2; factor > 1.002; factor = std::sqrt(factor)) {
    for (bool has_improved = true; has_improved;) {
      const double before = best;
      for (Searched& searched : values) {
        for (const double by : {factor, 1 / factor}) {
          const double tried = std::clamp(searched.value * by, searched.least, searched.most);
          set_constant(cluster, searched.name, tried);
          const double error = objective(cluster, steps, compare);
          if (error < best) {
            best = error;
            searched.value = tried;
          }
        }
        set_constant(cluster, searched.name, searched.value);
      }
      has_improved = best < before * (1 - 1e-6);
    }
  }
}

}  // namespace

std::vector<CalibrationStep> calibration_steps(const LayerSettings& settings, std::int64_t copies) {
  std::vector<CalibrationStep> steps;
  for (const Shape& shape : calibration_shapes()) {
    CalibrationStep step{
        .sequences = shape.sequences, .slices = shape.slices, .settings = settings, .copies = copies, .passes = {}};
    step.model.num_layers = shape.layers;
    step.model.hidden_size = shape.hidden;
    step.model.num_attention_heads = shape.heads;
    step.model.max_position_embeddings = shape.tokens;
    step.model.vocab_size = shape.vocabulary;
    if (step.slices.empty()) step.slices = {shape.tokens};
    steps.push_back(std::move(step));
  }
  return steps;
}

void measure(std::vector<CalibrationStep>& steps, const std::shared_ptr<Mesh>& mesh, Backend& backend, int rounds,
             const std::function<void(int, int)>& progress) {
  std::vector<std::unique_ptr<StepClock>> clocks;
  for (const CalibrationStep& step : steps) {
    const ProfileRequest request{.model = step.model,
                                 .sequences = step.sequences,
                                 .tokens = step.model.max_position_embeddings,
                                 .cell_layers = {step.model.num_layers},
                                 .recompute = step.settings.recompute,
                                 .sequence_parallel = step.settings.sequence_parallel,
                                 .shard_optimizer = step.shards_optimizer};
    const bool is_sliced = step.slices.size() > 1;
    const pipeline::Schedule schedule =
        pipeline::make_schedule(is_sliced ? pipeline::ScheduleKind::kTeraPipe : pipeline::ScheduleKind::kGpipe,
                                {.slices = static_cast<int>(step.slices.size())});
    clocks.push_back(std::make_unique<StepClock>(request, schedule, step.slices, mesh, backend));
  }
  std::vector<std::vector<StepTimes>> times(steps.size());
  for (int round = 0; round <= rounds; ++round) {
    if (progress) progress(round, rounds + 1);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      StepTimes one = clocks[i]->step();
      if (round > 0) times[i].push_back(std::move(one));
    }
  }
  if (progress) progress(rounds + 1, rounds + 1);
  // Others that use the machine make passes longer, never shorter.
  const auto least_of = [](const std::vector<StepTimes>& all, const auto& value) {
    std::vector<double> values;
    for (const StepTimes& one : all) values.push_back(value(one));
    return std::ranges::min(values);
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CalibrationStep& step = steps[i];
    for (std::size_t slice = 0; slice < step.slices.size(); ++slice) {
      step.passes.push_back(pipeline::PassTimes::even_parts(
          least_of(times[i], [&](const StepTimes& one) { return one.passes[0][slice].forward; }),
          least_of(times[i], [&](const StepTimes& one) { return one.passes[0][slice].backward; })));
    }
    // A plan is held to the steps that are usual, which are slower: threads wake up late, ranks wait for each other.
    std::vector<double> after, whole;
    for (const StepTimes& one : times[i]) {
      after.push_back(one.iteration - one.pipeline);
      whole.push_back(one.pipeline);
    }
    double least = 0;
    for (const pipeline::PassTimes& pass : step.passes) least += pass.forward + pass.backward;
    step.after = median(after);
    step.pace = median(whole) / least;
  }
}

pipeline::PassTimes predicted(const CalibrationStep& step, const Cluster& cluster, std::size_t slice) {
  Cluster at_best = cluster;
  set_constant(at_best, "pace", 1);
  const ModelCosts costs(step.model, step.settings, at_best);
  const std::int64_t context =
      std::accumulate(step.slices.begin(), step.slices.begin() + static_cast<std::ptrdiff_t>(slice), std::int64_t{0});
  const Slice shape{.sequences = step.sequences, .tokens = step.slices[slice], .context = context};
  const auto layers = static_cast<double>(step.model.num_layers);
  const pipeline::PassTimes layer = costs.layer(shape), ends = costs.embedding(shape), head = costs.head(shape);
  return {.forward = layers * layer.forward + ends.forward + head.forward,
          .backward = layers * layer.backward + ends.backward + head.backward};
}

double predicted_after(const CalibrationStep& step, const Cluster& cluster) {
  const ModelCosts costs(step.model, step.settings, cluster);
  const auto parameters = static_cast<double>(step.model.parameters());
  const double shares = step.shards_optimizer ? static_cast<double>(step.copies) : 1;
  double seconds = costs.update_seconds(parameters / shares);
  if (step.copies > 1) {
    const CostConstants constants = constants_of(cluster);
    const CollectiveGroup copies{.size = step.copies};
    seconds += constants.sum_interference * all_reduce_seconds(cluster, copies, constants.gradient_bytes * parameters);
    if (step.shards_optimizer) {
      const double weights = static_cast<double>(size_of(step.settings.dtype)) * parameters;
      seconds += all_gather_seconds(cluster, copies, weights * constants.gather_slowdown);
    }
  }
  return 1e3 * seconds;
}

Calibration calibrate(Cluster cluster, const std::vector<CalibrationStep>& steps, int cores) {
  std::vector<Searched> values = {{"product_efficiency", 0.7, 0.01, 1}, {"saturation", 8, 0.01, 1000},
                                  {"memory_efficiency", 0.5, 0.01, 1},  {"kernel_start", 3e-6, 1e-8, 1e-3},
                                  {"gradient_speed", 1, 0.2, 5},        {"attention_efficiency", 0.3, 0.01, 1},
                                  {"weight_passes", 1, 0.01, 100},      {"loss_passes", 6, 0.1, 100}};
  if (!cluster.links.empty()) {
    values.push_back({"link latency", cluster.links.front().latency, 1e-8, 1e-2});
  }
  if (cores > 1) values.push_back({"lone_start", 3e-6, 1e-8, 1e-3});
  if (cores > 0) set_constant(cluster, "cores", cores);
  search(cluster, values, steps, compare_passes);
  // The update's share of a step is small and uneven, and passes should not be bent for it.
  std::vector<Searched> update = {{"update_bytes", 30, 1, 1000}};
  // Sums begin beside the passes, and what they take from these is measured with the update.
  if (!cluster.links.empty()) update.push_back({"sum_interference", 1, 0.01, 10});
  // Only steps of both kinds tell what of it a sharded optimizer saves, and what its gathers cost.
  if (std::ranges::any_of(steps, &CalibrationStep::shards_optimizer)) {
    update.push_back({"gather_slowdown", 1, 0.01, 1000});
  }
  search(cluster, update, steps, compare_updates);
  std::vector<double> paces;
  for (const CalibrationStep& step : steps) {
    if (step.pace > 0) paces.push_back(step.pace);
  }
  if (!paces.empty()) set_constant(cluster, "pace", std::clamp(median(paces), 1.0, 100.0));
  Calibration result{.cluster = std::move(cluster)};
  double passes = 0;
  compare_passes(result.cluster, steps, [&](double ours, double measured) {
    const double error = std::abs(ours / measured - 1);
    result.mean_error += error;
    result.worst_error = std::max(result.worst_error, error);
    ++passes;
  });
  result.mean_error /= passes;
  return result;
}

}  // namespace teratron::plan

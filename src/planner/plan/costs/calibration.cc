#include "plan/costs/calibration.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/median.h"
#include "plan/costs/layer_costs.h"

namespace teratron::plan {
namespace {

LayerSettings settings_of(const CalibrationStep& step) { return {.tensor = step.tensor, .dtype = step.dtype}; }

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
    if (step.tensor == 1) use(predicted_after(step, cluster), step.after);
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

pipeline::PassTimes predicted(const CalibrationStep& step, const Cluster& cluster, std::size_t slice) {
  Cluster at_best = cluster;
  set_constant(at_best, "pace", 1);
  const ModelCosts costs(step.model, settings_of(step), at_best);
  const std::int64_t context =
      std::accumulate(step.slices.begin(), step.slices.begin() + static_cast<std::ptrdiff_t>(slice), std::int64_t{0});
  const Slice shape{.sequences = step.sequences, .tokens = step.slices[slice], .context = context};
  const auto layers = static_cast<double>(step.model.num_layers);
  const pipeline::PassTimes layer = costs.layer(shape), ends = costs.embedding(shape), head = costs.head(shape);
  return {.forward = layers * layer.forward + ends.forward + head.forward,
          .backward = layers * layer.backward + ends.backward + head.backward};
}

double predicted_after(const CalibrationStep& step, const Cluster& cluster) {
  const ModelCosts costs(step.model, settings_of(step), cluster);
  const auto parameters = static_cast<double>(step.model.parameters());
  const double shares = step.shards_optimizer ? static_cast<double>(step.copies) : 1;
  double seconds = costs.update_seconds(parameters / shares);
  if (step.copies > 1) {
    const CostConstants constants = constants_of(cluster);
    const CollectiveGroup copies{.size = step.copies};
    seconds += constants.sum_interference * all_reduce_seconds(cluster, copies, constants.gradient_bytes * parameters);
    if (step.shards_optimizer) {
      const double weights = static_cast<double>(size_of(step.dtype)) * parameters;
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
  // Only steps of both kinds show the savings of a sharded optimizer and the cost of its gathers.
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

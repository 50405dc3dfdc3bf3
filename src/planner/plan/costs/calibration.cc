#include "plan/costs/calibration.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/median.h"
#include "plan/costs/layer_costs.h"

namespace teratron::plan {
namespace {

// A measured step with the costs of its model, which the search computes once.
struct KnownStep {
  explicit KnownStep(const CalibrationStep& measured, const Cluster& cluster)
      : step(measured),
        costs(measured.model, {.tensor = measured.tensor, .dtype = measured.dtype}, cluster),
        parameters(static_cast<double>(measured.model.parameters())) {}

  std::vector<pipeline::PassTimes> passes(const Cluster& cluster) const;
  double after(const Cluster& cluster) const;

  const CalibrationStep& step;
  const ModelCosts costs;  // on any cluster
  const double parameters;
};

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
using Compare = void (*)(const Cluster&, const std::vector<KnownStep>&, const Use&);

Cluster at_its_best(Cluster cluster) {
  set_constant(cluster, "pace", 1);
  return cluster;
}

void compare_passes(const Cluster& cluster, const std::vector<KnownStep>& steps, const Use& use) {
  const Cluster at_best = at_its_best(cluster);
  for (const KnownStep& known : steps) {
    const std::vector<pipeline::PassTimes> passes = known.passes(at_best);
    for (std::size_t slice = 0; slice < passes.size(); ++slice) {
      use(passes[slice].forward, known.step.passes[slice].forward);
      use(passes[slice].backward, known.step.passes[slice].backward);
    }
  }
}

void compare_updates(const Cluster& cluster, const std::vector<KnownStep>& steps, const Use& use) {
  for (const KnownStep& known : steps) {
    if (known.step.tensor == 1) use(known.after(cluster), known.step.after);
  }
}

double objective(const Cluster& cluster, const std::vector<KnownStep>& steps, Compare compare) {
  double sum = 0;
  compare(cluster, steps, [&](double ours, double measured) {
    const double error = std::log(ours / measured);
    sum += error * error;
  });
  return sum;
}

// Changes one value after the other by smaller and smaller factors, as long as that helps.
void search(Cluster& cluster, std::vector<Searched>& values, const std::vector<KnownStep>& steps, Compare compare) {
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

std::vector<pipeline::PassTimes> KnownStep::passes(const Cluster& cluster) const {
  const ModelCosts here = costs.on(cluster);
  const auto layers = static_cast<double>(step.model.num_layers);
  std::vector<pipeline::PassTimes> passes;
  Slice slice{.sequences = step.sequences};
  for (const std::int64_t tokens : step.slices) {
    slice.tokens = tokens;
    const pipeline::PassTimes layer = here.layer(slice), ends = here.embedding(slice), head = here.head(slice);
    passes.push_back({.forward = layers * layer.forward + ends.forward + head.forward,
                      .backward = layers * layer.backward + ends.backward + head.backward});
    slice.context += tokens;
  }
  return passes;
}

double KnownStep::after(const Cluster& cluster) const {
  const double shares = step.shards_optimizer ? static_cast<double>(step.copies) : 1;
  double seconds = costs.on(cluster).update_seconds(parameters / shares);
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

}  // namespace

std::vector<pipeline::PassTimes> predicted(const CalibrationStep& step, const Cluster& cluster) {
  return KnownStep(step, cluster).passes(at_its_best(cluster));
}

double predicted_after(const CalibrationStep& step, const Cluster& cluster) {
  return KnownStep(step, cluster).after(cluster);
}

Calibration calibrate(Cluster cluster, const std::vector<CalibrationStep>& measured, int cores) {
  std::vector<KnownStep> steps;
  for (const CalibrationStep& step : measured) steps.emplace_back(step, cluster);
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
  if (std::ranges::any_of(measured, &CalibrationStep::shards_optimizer)) {
    update.push_back({"gather_slowdown", 1, 0.01, 1000});
  }
  search(cluster, update, steps, compare_updates);
  std::vector<double> paces;
  for (const CalibrationStep& step : measured) {
    if (step.pace > 0) paces.push_back(step.pace);
  }
  if (!paces.empty()) set_constant(cluster, "pace", std::clamp(median(paces), 1.0, 100.0));
  Calibration result{.cluster = std::move(cluster)};
  double passes = 0;
  compare_passes(result.cluster, steps, [&](double ours, double theirs) {
    const double error = std::abs(ours / theirs - 1);
    result.mean_error += error;
    result.worst_error = std::max(result.worst_error, error);
    ++passes;
  });
  result.mean_error /= passes;
  return result;
}

}  // namespace teratron::plan

#include "profile/pipeline_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/host/monotonic_clock.h"
#include "base/median.h"
#include "base/round_up.h"
#include "executor/stream_messages.h"
#include "pipeline/deferral.h"
#include "profile/slicings.h"
#include "slicing/cost/iteration_times.h"

namespace teratron {
namespace {

constexpr double kShortVisit = 100;  // least milliseconds of a visit, unless that takes more than kMostSteps
constexpr double kMostSteps = 16;

// Runs one slicing and appends its steps. If a step is short, the first one is a warm-up and several more follow.
// Returns the milliseconds of all of them.
double visit(StepClock& clock, std::vector<StepTimes>& steps) {
  StepTimes first = clock.step();
  double milliseconds = first.iteration;
  if (first.iteration >= kShortVisit) {
    steps.push_back(std::move(first));
    return milliseconds;
  }
  const int more = static_cast<int>(std::min(std::ceil(kShortVisit / first.iteration), kMostSteps));
  for (int step = 0; step < more; ++step) {
    steps.push_back(clock.step());
    milliseconds += steps.back().iteration;
  }
  return milliseconds;
}

struct Measured {
  ProfileSlicing slicing;
  std::vector<StepTimes> steps;

  std::vector<double> all_of(const std::function<double(const StepTimes&)>& value) const {
    std::vector<double> values;
    for (const StepTimes& step : steps) values.push_back(value(step));
    return values;
  }
  // The median iteration, if it was measured at all.
  slicing::MeasuredIteration iteration() const {
    return {.slices = slicing.lengths,
            .micro_batches = slicing.micro_batches,
            .held_out = slicing.held_out,
            .pipeline = steps.empty() ? 0 : median(all_of([](const StepTimes& step) { return step.pipeline; }))};
  }
};

enum class Part { kFit, kHeldOut, kDeferred };

Part part_of(const ProfileSlicing& slicing) {
  return slicing.is_deferred ? Part::kDeferred : slicing.held_out ? Part::kHeldOut : Part::kFit;
}

// Points of a stage's pass, from slicings of this part with one micro-batch and every `stride`-th step from `first` on.
std::vector<slicing::CostPoint> points_of(const std::vector<Measured>& all, std::size_t stage,
                                          double StepTimes::Pass::*pass, Part part, std::size_t first = 0,
                                          std::size_t stride = 1) {
  std::vector<slicing::CostPoint> points;
  for (const Measured& measured : all) {
    if (part_of(measured.slicing) != part || measured.slicing.micro_batches > 1) continue;
    std::int64_t context = 0;
    for (std::size_t slice = 0; slice < measured.slicing.lengths.size(); ++slice) {
      const std::int64_t length = measured.slicing.lengths[slice];
      // Other work of the machine only makes a pass longer, now and then by half.
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t step = first; step < measured.steps.size(); step += stride) {
        least = std::min(least, measured.steps[step].passes[stage][slice].*pass);
      }
      points.push_back({.length = length, .context = context, .milliseconds = least});
      context += length;
    }
  }
  return points;
}

// The difference between the even and the odd steps of held-out slicings; 0 if a slicing has only one step.
slicing::RelativeError noise_of(const std::vector<Measured>& all, std::size_t stage, double StepTimes::Pass::*pass) {
  const bool is_once = std::ranges::any_of(all, [](const Measured& measured) { return measured.steps.size() < 2; });
  if (is_once) return {};
  const std::vector<slicing::CostPoint> even = points_of(all, stage, pass, Part::kHeldOut, 0, 2);
  const std::vector<slicing::CostPoint> odd = points_of(all, stage, pass, Part::kHeldOut, 1, 2);
  slicing::RelativeError noise;
  for (std::size_t i = 0; i < even.size(); ++i) {
    const double apart = std::abs(even[i].milliseconds / odd[i].milliseconds - 1);
    noise.mean += apart / static_cast<double>(even.size());
    noise.worst = std::max(noise.worst, apart);
  }
  return noise;
}

// `whole`: the backward in one part.
std::optional<slicing::BackwardParts> parts_of(const std::vector<Measured>& all, std::size_t stage,
                                               const slicing::CostModel& whole) {
  const std::vector<slicing::CostPoint> weights =
      points_of(all, stage, &StepTimes::Pass::backward_weight, Part::kDeferred);
  if (weights.empty()) return std::nullopt;
  std::vector<slicing::CostPoint> more = points_of(all, stage, &StepTimes::Pass::backward, Part::kDeferred);
  for (slicing::CostPoint& both : more) both.milliseconds -= whole.milliseconds(both.length, both.context);
  return slicing::BackwardParts{.weights = slicing::fit_linear_time(weights), .more = slicing::fit_linear_time(more)};
}

slicing::StageCosts costs_of(const std::vector<Measured>& all, std::size_t stage) {
  slicing::StageCosts costs;
  const auto fit = [&](double StepTimes::Pass::*pass, slicing::CostModel& model, slicing::RelativeError& error,
                       slicing::RelativeError& noise) {
    model = slicing::fit_cost_model(points_of(all, stage, pass, Part::kFit));
    error = slicing::relative_error(model, points_of(all, stage, pass, Part::kHeldOut));
    noise = noise_of(all, stage, pass);
  };
  fit(&StepTimes::Pass::forward, costs.forward, costs.forward_error, costs.forward_noise);
  fit(&StepTimes::Pass::backward, costs.backward, costs.backward_error, costs.backward_noise);
  costs.parts = parts_of(all, stage, costs.backward);
  return costs;
}

pipeline::Schedule schedule_of(const Measured& measured, int stages) {
  pipeline::Schedule schedule = slicing::schedule_of(measured.iteration(), stages);
  if (!measured.slicing.is_deferred) return schedule;
  return pipeline::defer_weight_gradients(schedule, pipeline::even_costs(schedule, /*forward=*/1, /*backward=*/2),
                                          pipeline::most_live_slices(schedule));
}

std::vector<Measured> measure_slicings(const ProfileRequest& request, const std::shared_ptr<Mesh>& mesh,
                                       Backend& backend, const ProfileProgress& progress) {
  const std::int64_t unit = request.sequence_parallel ? mesh->tensor->size() : 1;
  std::vector<Measured> all;
  for (ProfileSlicing& slicing : profile_slicings(request.tokens, mesh->pipeline->size(), unit)) {
    all.push_back({std::move(slicing), {}});
  }
  int rounds = request.repeats, done = 0;
  const auto report = [&] {
    if (progress) progress(done, 1 + rounds * static_cast<int>(all.size()));
    ++done;
  };
  report();
  const auto clock_of = [&](const Measured& measured) {
    return StepClock(request, schedule_of(measured, mesh->pipeline->size()), measured.slicing.lengths, mesh, backend);
  };
  // One executor exists at a time: several would take several times the memory of training.
  clock_of(all.front()).step();
  report();
  double milliseconds = 0;  // the same on every rank
  for (int repeat = 0; repeat < rounds; ++repeat) {
    // The order is reversed every other round, so that a machine that slows down meanwhile affects all slicings alike.
    for (std::size_t place = 0; place < all.size(); ++place) {
      Measured& measured = all[repeat % 2 == 0 ? place : all.size() - 1 - place];
      StepClock clock = clock_of(measured);
      milliseconds += visit(clock, measured.steps);
      if (milliseconds > 1e3 * request.most_seconds) rounds = repeat + 1;
      report();
    }
  }
  return all;
}

constexpr int kRoundTrips = 15;

// Milliseconds of a message between `stage` and the next one, one way: the median of several. 0 on other stages' ranks.
double one_way(Mesh& mesh, Backend& backend, const StreamMessages& messages, const TensorRef& view, int stage) {
  Communicator& stages = *mesh.pipeline;
  const bool is_first = stages.rank() == stage, is_second = stages.rank() == stage + 1;
  mesh.model->barrier();
  if (!is_first && !is_second) return 0;
  const int other = is_first ? stage + 1 : stage;
  std::vector<double> times;
  for (int trip = 0; trip < kRoundTrips; ++trip) {
    const double start = monotonic_seconds();
    // The view goes there as activations do, and back as gradients do.
    Communicator& back = *mesh.pipeline_back;
    if (is_first) {
      messages.send(stages, view, other).wait();
      messages.receive(back, view, other).wait();
    } else {
      messages.receive(stages, view, other).wait();
      messages.send(back, view, other).wait();
    }
    backend.wait();
    times.push_back(1e3 * (monotonic_seconds() - start) / 2);
  }
  return median(std::move(times));
}

// The time of a slice's activations from a stage to the next one, for the slowest pair of neighbours. Views of
// `shortest` and `longest` tokens go to and fro, one pair after another. Zero for one stage.
slicing::LinearTime measure_transfers(Mesh& mesh, Backend& backend, const ProfileRequest& request) {
  const std::int64_t shortest = request.sequences, longest = request.sequences * request.tokens;
  const StreamMessages messages(mesh, request.sequence_parallel);
  const std::int64_t sharers = request.sequence_parallel ? mesh.tensor->size() : 1;
  const auto rows = [&](std::int64_t tokens) { return round_up(tokens, sharers) / sharers; };
  const Tensor tensor(backend, backend.compute_dtype(), {rows(longest), request.model.hidden_size});
  backend.fill_zero(tensor);
  const auto stream = [&](std::int64_t tokens) { return tensor.ref().slice(0, 0, rows(tokens)); };
  std::vector<double> times(2);  // of the shortest and of the longest
  for (int stage = 0; stage + 1 < mesh.pipeline->size(); ++stage) {
    times[0] = std::max(times[0], one_way(mesh, backend, messages, stream(shortest), stage));
    times[1] = std::max(times[1], one_way(mesh, backend, messages, stream(longest), stage));
  }
  mesh.model->all_reduce_host(times, ReduceOp::kMax);
  mesh.data->all_reduce_host(times, ReduceOp::kMax);
  if (longest == shortest) return {.fixed = times[0]};
  const double per_token = std::max(0.0, times[1] - times[0]) / static_cast<double>(longest - shortest);
  return {.fixed = std::max(0.0, times[0] - per_token * static_cast<double>(shortest)), .per_token = per_token};
}

}  // namespace

slicing::Profile measure_profile(const ProfileRequest& request, const std::shared_ptr<Mesh>& mesh, Backend& backend,
                                 const ProfileProgress& progress) {
  check(request.repeats >= 1, "a profile is measured once at least");
  note_activity({.name = "measuring a profile"});
  const std::vector<Measured> all = measure_slicings(request, mesh, backend, progress);
  slicing::Profile profile{.key = profile_key(request, *mesh, backend)};
  for (int stage = 0; stage < mesh->pipeline->size(); ++stage) {
    profile.stages.push_back(costs_of(all, static_cast<std::size_t>(stage)));
  }
  profile.transfer = measure_transfers(*mesh, backend, request);
  std::vector<double> updates;
  for (const Measured& measured : all) {
    for (const StepTimes& step : measured.steps) updates.push_back(step.iteration - step.pipeline);
    if (!measured.slicing.is_deferred) profile.iterations.push_back(measured.iteration());
  }
  profile.update = median(std::move(updates));
  profile.pace = slicing::pace_of(profile);
  return profile;
}

}  // namespace teratron

#include "profile/calibration_steps.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "base/median.h"
#include "comm/mesh.h"
#include "pipeline/generators.h"
#include "profile/step_times.h"

namespace teratron {
namespace {

struct ModelShape {
  std::int64_t layers, hidden, heads, tokens, sequences, vocabulary;
  std::vector<std::int64_t> slices = {};  // empty: whole
};

const std::vector<ModelShape>& calibration_shapes() {
  static const std::vector<ModelShape> shapes = {
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
      // Few rows, for the time of reading the weights.
      {4, 256, 4, 32, 1, 2048},
      {2, 512, 8, 32, 1, 512},
      {2, 256, 4, 64, 1, 8192, {32, 32}},
      {2, 96, 2, 64, 1, 8192},
  };
  return shapes;
}

// Runs the steps in turns. All ranks of the mesh call it.
void measure(std::vector<CalibrationStep>& steps, const std::shared_ptr<Mesh>& mesh, Backend& backend, int rounds,
             const std::function<void(int, int)>& progress) {
  std::vector<std::unique_ptr<StepClock>> clocks;
  for (const CalibrationStep& step : steps) {
    const ProfileRequest request{.model = step.model,
                                 .sequences = step.sequences,
                                 .tokens = step.model.max_position_embeddings,
                                 .cell_layers = {step.model.num_layers},
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
  // Other users of the machine make passes longer, never shorter.
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
    // A usual step is slower than the best one: threads wake up late, and ranks wait for each other.
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

}  // namespace

std::vector<CalibrationStep> calibration_steps(std::int64_t tensor, std::int64_t copies, DType dtype) {
  std::vector<CalibrationStep> steps;
  for (const ModelShape& shape : calibration_shapes()) {
    CalibrationStep step{.sequences = shape.sequences,
                         .slices = shape.slices,
                         .tensor = tensor,
                         .copies = copies,
                         .dtype = dtype,
                         .passes = {}};
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

std::vector<CalibrationStep> measured_steps(Communicator& world, Backend& backend, int rounds, const ShowRounds& show) {
  const int ranks = world.size();
  const DType dtype = backend.compute_dtype();
  std::vector<CalibrationStep> all;
  const auto add = [&](std::vector<CalibrationStep> steps, const MeshShape& shape, const char* models) {
    measure(steps, std::make_shared<Mesh>(make_mesh(world, shape)), backend, rounds, show(models));
    std::ranges::move(steps, std::back_inserter(all));
  };
  add(calibration_steps(1, ranks, dtype), {.data = ranks}, "small models, one on each rank");
  if (ranks == 1) return all;
  std::vector<CalibrationStep> sharded = calibration_steps(1, ranks, dtype);
  std::erase_if(sharded, [](const CalibrationStep& step) { return step.slices.size() > 1; });
  for (CalibrationStep& step : sharded) step.shards_optimizer = true;
  add(std::move(sharded), {.data = ranks}, "the same with a sharded optimizer");
  std::vector<CalibrationStep> split = calibration_steps(ranks, 1, dtype);
  std::erase_if(split, [&](const CalibrationStep& step) { return step.model.num_attention_heads % ranks != 0; });
  add(std::move(split), {.tensor = ranks}, "small models, one on all ranks");
  return all;
}

}  // namespace teratron

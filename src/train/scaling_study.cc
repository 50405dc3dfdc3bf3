#include "train/scaling_study.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/child_process.h"
#include "base/error.h"
#include "base/philox.h"
#include "base/threads.h"
#include "comm/launch.h"
#include "model/gpt2.h"
#include "optim/adamw_optimizer.h"
#include "telemetry/peak_memory.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

// A quarter of the paper's width and a tenth of its depth; the same batch of 8; a vocabulary that weighs as much
// against the layers as the paper's.
ModelConfig small_model(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  ModelConfig model;
  model.num_layers = layers;
  model.hidden_size = hidden;
  model.num_attention_heads = heads;
  model.vocab_size = 2048;
  return model;
}

// The rows of Table 1.
struct Size {
  int tensor;
  std::int64_t layers, hidden, heads;
  double paper_weak, paper_weak_with_data;
};
constexpr Size kTable1[] = {
    {1, 4, 384, 8, 100, 96}, {2, 5, 480, 10, 95, 83}, {4, 6, 576, 12, 82, 79}, {8, 7, 768, 16, 77, 74}};

ScalingStudy weak_scaling(std::int64_t ranks) {
  ScalingStudy study{.title = "Weak scaling, tensor parallel (Table 1)", .x_label = "ranks"};
  for (const Size& size : kTable1) {
    if (size.tensor > ranks) continue;
    study.points.push_back({.model = small_model(size.layers, size.hidden, size.heads),
                            .mesh = {.tensor = size.tensor},
                            .paper_x = size.tensor,
                            .paper_y = size.paper_weak});
  }
  return study;
}

ScalingStudy weak_scaling_with_data(std::int64_t ranks) {
  ScalingStudy study{.title = "Weak scaling, tensor x 2-way data parallel", .x_label = "ranks"};
  for (const Size& size : kTable1) {
    if (2 * size.tensor > ranks) continue;
    study.points.push_back({.model = small_model(size.layers, size.hidden, size.heads),
                            .mesh = {.tensor = size.tensor, .data = 2},
                            .batch = 16,
                            .paper_x = 64 * size.tensor,
                            .paper_y = size.paper_weak_with_data});
  }
  return study;
}

ScalingStudy heads(std::int64_t ranks) {
  ScalingStudy study{.title = "Attention heads (Table 7)", .x_label = "heads"};
  const auto tensor = static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(std::min<std::int64_t>(ranks, 8))));
  constexpr struct {
    std::int64_t heads;
    double paper;
  } kTable7[] = {{16, 82}, {24, 80}, {32, 77}};
  for (const auto& row : kTable7) {
    study.points.push_back({.model = small_model(4, 768, row.heads),
                            .mesh = {.tensor = tensor},
                            .paper_x = row.heads,
                            .paper_y = row.paper});
  }
  return study;
}

ScalingStudy strong_scaling(std::int64_t ranks) {
  ScalingStudy study{.title = "Strong scaling (Table 8)", .x_label = "ranks", .is_speedup = true};
  constexpr struct {
    int tensor;
    double paper;
  } kTable8[] = {{1, 1}, {2, 1.64}, {4, 2.34}, {8, 2.98}};
  for (const auto& row : kTable8) {
    if (row.tensor > ranks) continue;
    study.points.push_back(
        {.model = small_model(4, 384, 8), .mesh = {.tensor = row.tensor}, .paper_x = row.tensor, .paper_y = row.paper});
  }
  return study;
}

// One rank's training on random tokens.
class Steps {
 public:
  Steps(const ScalingPoint& point, const ScalingSettings& settings, Communicator& world)
      : batch_(point.batch / point.mesh.data),
        tokens_(settings.tokens),
        world_(world),
        backend_(make_cpu_backend()),
        runner_(*backend_, with_positions(point.model, settings.tokens), {.batch = batch_, .tokens = tokens_},
                std::make_shared<Mesh>(make_mesh(world, point.mesh))),
        parameters_(runner_.parameters()) {
    runner_.allocate();
    runner_.initialize(1);
    const int copy = runner_.mesh().data->rank();
    RandomSequence random({.seed = 1, .stream = static_cast<std::uint32_t>(copy)});
    for (std::int64_t i = 0; i < batch_ * tokens_; ++i) {
      ids_.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(point.model.vocab_size))));
    }
    targets_.assign(ids_.rbegin(), ids_.rend());
    weights_.assign(ids_.size(), 1.0F / static_cast<float>(point.batch * tokens_));
  }

  // From the moment that all ranks begin to the moment that all are done.
  double run() {
    world_.barrier();
    const Clock::time_point start = Clock::now();
    runner_.forward_backward({.ids = ids_,
                              .targets = targets_,
                              .weights = weights_,
                              .batch = batch_,
                              .tokens = tokens_,
                              .first_sample = batch_ * runner_.mesh().data->rank(),
                              .iteration = static_cast<std::uint32_t>(update_)});
    const double norm = gradient_norm(*backend_, parameters_, runner_.mesh());
    adamw_update(*backend_, parameters_, {}, {.learning_rate = 1e-4, .update = ++update_, .gradient_norm = norm});
    world_.barrier();
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  std::int64_t planned_bytes() const { return runner_.memory().bytes(); }

 private:
  static ModelConfig with_positions(ModelConfig model, std::int64_t positions) {
    model.max_position_embeddings = positions;
    return model;
  }

  std::int64_t batch_, tokens_;
  Communicator& world_;
  std::unique_ptr<Backend> backend_;
  Gpt2Runner runner_;
  std::vector<Parameter*> parameters_;
  std::vector<std::int32_t> ids_, targets_;
  std::vector<float> weights_;
  std::int64_t update_ = 0;
};

ScalingMeasurement measure_here(const ScalingPoint& point, const ScalingSettings& settings) {
  const std::uint64_t before = peak_memory_bytes();
  const int ranks = point.mesh.ranks();
  ScalingMeasurement measured{.flops = static_cast<double>(point.batch * settings.tokens) *
                                       point.model.training_flops_per_token(settings.tokens),
                              .cores = std::min<std::int64_t>(settings.cores, ranks)};
  set_thread_count(static_cast<int>(measured.cores));
  run_ranks({}, ranks, [&](Communicator& world) {
    Steps steps(point, settings, world);
    steps.run();
    std::vector<double> seconds;
    for (std::int64_t step = 0; step < settings.steps; ++step) seconds.push_back(steps.run());
    std::ranges::sort(seconds);
    if (world.rank() != 0) return;
    measured.seconds = seconds[seconds.size() / 2];
    measured.planned_bytes = steps.planned_bytes();
  });
  measured.peak_bytes = static_cast<std::int64_t>(peak_memory_bytes() - before) / ranks;
  return measured;
}

}  // namespace

std::vector<ScalingStudy> scaling_studies(std::int64_t ranks) {
  std::vector<ScalingStudy> studies = {weak_scaling(ranks), weak_scaling_with_data(ranks), heads(ranks),
                                       strong_scaling(ranks)};
  std::erase_if(studies, [](const ScalingStudy& study) { return study.points.empty(); });
  return studies;
}

ScalingPoint scaling_baseline() { return weak_scaling(1).points.front(); }

ScalingMeasurement measure_scaling(const ScalingPoint& point, const ScalingSettings& settings) {
  check(point.batch % point.mesh.data == 0 && settings.steps >= 1 && settings.cores >= 1, "a scaling point");
  return run_in_child([&] { return measure_here(point, settings); });
}

}  // namespace teratron

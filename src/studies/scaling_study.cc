#include "studies/scaling_study.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "base/host/monotonic_clock.h"
#include "base/host/threads.h"
#include "comm/launch.h"
#include "executor/executor.h"
#include "model/make_model.h"
#include "studies/child_process.h"
#include "telemetry/peak_memory.h"

namespace teratron {
namespace {

struct PaperModel {
  const char* name;
  std::int64_t heads, layers;
  int tensor_ranks;
  double weak, weak_with_copies;  // efficiency on tensor_ranks GPUs, and on 64 times as many
};
constexpr PaperModel kTable1[] = {{"1.2B", 16, 40, 1, 1.00, 0.96},
                                  {"2.5B", 20, 54, 2, 0.95, 0.83},
                                  {"4.2B", 24, 64, 4, 0.82, 0.79},
                                  {"8.3B", 32, 72, 8, 0.77, 0.74}};

struct PaperHeads {
  std::int64_t heads;
  double efficiency;
};
constexpr PaperHeads kTable7[] = {{16, 0.82}, {24, 0.80}, {32, 0.77}};  // of the 8.3B model on 8 GPUs

struct PaperSpeedup {
  int ranks;
  double speedup;
};
constexpr PaperSpeedup kTable8[] = {{1, 1.00}, {2, 1.64}, {4, 2.34}, {8, 2.98}};  // of the 1.2B model

constexpr std::int64_t kHeadSize = 96, kVocabulary = 51200, kSequence = 1024;

ModelConfig model_of(const PaperModel& paper, const ScalingSizes& sizes) {
  ModelConfig model;
  model.num_attention_heads = paper.heads;
  model.hidden_size = paper.heads * (kHeadSize / sizes.head_size_divisor);
  model.num_layers = std::max<std::int64_t>(1, paper.layers / sizes.layers_divisor);
  model.vocab_size = kVocabulary / sizes.vocab_divisor;
  model.max_position_embeddings = kSequence / sizes.sequence_divisor;
  return model;
}

class ScalingRun {
 public:
  ScalingRun(const ScalingRow& row, const ScalingSizes& sizes, Communicator& world)
      : batch_(row.batch / row.mesh.data),
        tokens_(row.sequence),
        backend_(make_cpu_backend()),
        mesh_(std::make_shared<Mesh>(make_mesh(world, row.mesh))),
        model_(make_model(row.model, mesh_->place().tensor)),
        executor_(*backend_, *model_,
                  {.batch = batch_,
                   .tokens = tokens_,
                   .recompute = sizes.recompute,
                   .sequence_parallel = sizes.sequence_parallel},
                  mesh_),
        parameters_(executor_.parameters()),
        weights_(static_cast<std::size_t>(batch_ * tokens_), 1.0F / static_cast<float>(row.batch * tokens_)) {
    executor_.allocate();
    executor_.initialize(1);
    std::mt19937 random(1 + static_cast<unsigned>(executor_.mesh().data->rank()));
    for (std::size_t i = 0; i <= weights_.size(); ++i) {
      ids_.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(row.model.vocab_size)));
    }
  }

  double update() {
    const double start = monotonic_seconds();
    executor_.forward_backward({.ids = std::span(ids_).first(weights_.size()),
                                .targets = std::span(ids_).last(weights_.size()),
                                .weights = weights_,
                                .batch = batch_,
                                .tokens = tokens_,
                                .first_sample = batch_ * executor_.mesh().data->rank(),
                                .iteration = static_cast<std::uint32_t>(updates_)});
    const double norm = gradient_norm(*backend_, parameters_, executor_.mesh());
    executor_.update({.learning_rate = 1e-4, .update = ++updates_, .gradient_norm = norm});
    return monotonic_seconds() - start;
  }

  std::int64_t planned_bytes() const { return executor_.memory().bytes(); }

 private:
  std::int64_t batch_, tokens_;
  std::unique_ptr<Backend> backend_;
  std::shared_ptr<Mesh> mesh_;
  std::unique_ptr<Model> model_;
  Executor executor_;
  std::vector<Parameter*> parameters_;
  std::vector<std::int32_t> ids_;
  std::vector<float> weights_;
  std::int64_t updates_ = 0;
};

std::string run_row(const ScalingRow& row, const ScalingSizes& sizes, int updates, int cores) {
  set_thread_count(std::min(cores, row.mesh.ranks()));
  nlohmann::json result;
  run_ranks({}, row.mesh.ranks(), [&](Communicator& world) {
    ScalingRun run(row, sizes, world);
    run.update();
    std::vector<double> seconds;
    for (int update = 0; update < updates; ++update) seconds.push_back(run.update());
    world.barrier();
    if (world.rank() != 0) return;
    result = {{"seconds", seconds},
              {"planned_bytes", run.planned_bytes()},
              {"measured_bytes", peak_memory_bytes() / static_cast<std::uint64_t>(row.mesh.ranks())}};
  });
  return result.dump();
}

}  // namespace

std::vector<ScalingRow> scaling_rows(const ScalingSizes& sizes) {
  std::vector<ScalingRow> rows;
  const std::int64_t sequence = kSequence / sizes.sequence_divisor;
  const auto add = [&](const char* study, std::string paper_row, double figure, const ModelConfig& model, int tensor,
                       std::int64_t copies) {
    if (tensor > sizes.most_tensor_ranks) return;
    rows.push_back({.study = study,
                    .paper_row = std::move(paper_row),
                    .paper = figure,
                    .model = model,
                    .mesh = {.tensor = tensor, .data = static_cast<int>(copies)},
                    .batch = sizes.batch * copies,
                    .sequence = sequence});
  };
  for (const PaperModel& paper : kTable1) {
    add("weak", fmt::format("{} on {} GPUs", paper.name, paper.tensor_ranks), paper.weak, model_of(paper, sizes),
        paper.tensor_ranks, 1);
  }
  for (const PaperModel& paper : kTable1) {
    add("weak with data parallelism", fmt::format("{} on {} GPUs", paper.name, 64 * paper.tensor_ranks),
        paper.weak_with_copies, model_of(paper, sizes), paper.tensor_ranks, sizes.copies);
  }
  // The largest model that the ranks asked for are meant for, its hidden size kept.
  const PaperModel* largest = kTable1;
  for (const PaperModel& paper : kTable1) {
    if (paper.tensor_ranks <= sizes.most_tensor_ranks) largest = &paper;
  }
  for (const PaperHeads& paper : kTable7) {
    ModelConfig model = model_of(*largest, sizes);
    model.num_attention_heads = paper.heads;
    if (model.hidden_size % paper.heads != 0) continue;
    add("heads", fmt::format("8.3B with {} heads on 8 GPUs", paper.heads), paper.efficiency, model,
        largest->tensor_ranks, 1);
  }
  for (const PaperSpeedup& paper : kTable8) {
    add("strong", fmt::format("1.2B on {} GPUs", paper.ranks), paper.speedup, model_of(kTable1[0], sizes), paper.ranks,
        1);
  }
  return rows;
}

ScalingResult measure(const ScalingRow& row, const ScalingSizes& sizes, int updates, int cores) {
  const auto json = nlohmann::json::parse(in_child_process([&] { return run_row(row, sizes, updates, cores); }));
  return {.seconds = json["seconds"].get<std::vector<double>>(),
          .flops = static_cast<double>(row.batch * row.sequence) * row.model.training_flops_per_token(row.sequence),
          .planned_bytes = json["planned_bytes"].get<std::int64_t>(),
          .measured_bytes = json["measured_bytes"].get<std::int64_t>()};
}

}  // namespace teratron

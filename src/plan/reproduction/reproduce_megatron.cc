// Megatron-LM (arXiv 1909.08053): Figure 5 (weak scaling), Tables 7 and 8 of its appendix (heads, strong scaling), and
// the whole run of section 5. Weak scaling is of operations a second and device beside one device's 39 TFLOP/s, as the
// paper's 15.1 PFLOP/s = 76 % of 512 of them says. Operations are counted as its authors do (arXiv 2104.04473), with
// the forward that full recompute runs again.
#include <fmt/format.h>

#include "cluster/cluster_file.h"
#include "plan/costs/step_time.h"
#include "plan/reproduction/reproduction.h"

namespace teratron::plan {
namespace {

constexpr std::int64_t kVocabulary = 51200, kSequence = 1024, kMicroBatch = 8, kUpdates = 300'000;
constexpr double kSecondsOfDay = 86400;

struct Run {
  const char* preset;
  std::int64_t tensor, data = 1, heads = 0;  // 0: the preset's
};

struct Outcome {
  double seconds = 0, operations = 0;  // of an update
  std::int64_t devices = 1;
  double rate() const { return operations / seconds / static_cast<double>(devices); }
};

TrainConfig config_of(const Run& run) {
  const ModelPreset& preset = find_model_preset(run.preset);
  TrainConfig config;
  config.model.num_layers = preset.num_layers;
  config.model.hidden_size = preset.hidden_size;
  config.model.num_attention_heads = run.heads == 0 ? preset.num_attention_heads : run.heads;
  config.model.vocab_size = kVocabulary;
  config.model.max_position_embeddings = kSequence;
  config.seq_length = kSequence;
  config.micro_batch_size = kMicroBatch;
  config.global_batch_size = kMicroBatch * run.data;
  config.tensor_parallel = run.tensor;
  config.data_parallel = run.data;
  config.recompute = Recompute::kFull;
  config.fp16 = true;
  return config;
}

// 96 B s L h^2 (1 + s / 6h + V / 16 L h)
double operations_of(const TrainConfig& config) {
  const auto l = static_cast<double>(config.model.num_layers), h = static_cast<double>(config.model.hidden_size);
  const auto s = static_cast<double>(config.seq_length), b = static_cast<double>(config.largest_batch());
  return 96 * b * s * l * h * h * (1 + s / (6 * h) + static_cast<double>(kVocabulary) / (16 * l * h));
}

Outcome outcome_of(const Run& run) {
  const TrainConfig config = config_of(run);
  const std::int64_t devices = run.tensor * run.data;
  const StepTime time = predict_step(config, find_cluster("dgx-2h", devices), kVocabulary);
  return {.seconds = time.seconds, .operations = operations_of(config), .devices = devices};
}

constexpr const char* kTwoWays =
    "with 64 copies the published rates lose 4, 12, 3 and 3 points at 1, 2, 4 and 8-way, though a copy's gradients on "
    "a host's port grow with the ways; no cost of theirs does that";
constexpr const char* kDays =
    "the 8.3B with 24 heads, 300k updates of 512 x 1024 tokens; 2.1 days each 68,507 updates, in which its evaluations "
    "and checkpoints are";
constexpr const char* kZetta = "300k updates by the formula above; the published number is 15.1 PFLOP/s for 9.2 days";

}  // namespace

Reproduction reproduce_megatron() {
  Reproduction result{.title = "Megatron-LM on DGX-2H (arXiv 1909.08053)"};
  const auto add = [&](std::string name, std::string unit, double published, double ours, bool is_fitted = false,
                       std::string unmet = "", std::string assumed = "") {
    result.cells.push_back(
        {std::move(name), std::move(unit), published, ours, is_fitted, std::move(unmet), std::move(assumed)});
  };
  struct Size {
    const char* preset;
    std::int64_t tensor;
    double alone, copies;  // published
  };
  constexpr Size kSizes[] = {{"1.2B", 1, 100, 96}, {"2.5B", 2, 95, 83}, {"4.2B", 4, 82, 79}, {"8.3B", 8, 77, 74}};
  const Outcome base = outcome_of({"1.2B", 1});
  add("1.2B on one GPU", "TFLOP/s", 39, base.rate() / 1e12, true);
  for (const Size& size : kSizes) {
    add(fmt::format("weak scaling, TP {}", size.tensor), "%", size.alone,
        100 * outcome_of({size.preset, size.tensor}).rate() / base.rate(), size.tensor == 8, "",
        size.tensor == 1 ? "by definition" : "");
  }
  Outcome largest;
  for (const Size& size : kSizes) {
    largest = outcome_of({size.preset, size.tensor, 64});
    add(fmt::format("weak scaling with DP 64, TP {}", size.tensor), "%", size.copies,
        100 * largest.rate() / base.rate(), size.tensor == 1 || size.tensor == 8, size.tensor == 2 ? kTwoWays : "");
  }
  for (const auto& [heads, published] : {std::pair{16, 82.0}, std::pair{24, 80.0}, std::pair{32, 77.0}}) {
    add(fmt::format("8.3B at TP 8, {} heads", heads), "%", published,
        100 * outcome_of({"8.3B", 8, 1, heads}).rate() / base.rate(), heads == 16);
  }
  for (const auto& [tensor, published] :
       {std::pair{1, 1.0}, std::pair{2, 1.64}, std::pair{4, 2.34}, std::pair{8, 2.98}}) {
    add(fmt::format("strong scaling of 1.2B, TP {}", tensor), "x", published,
        base.seconds / outcome_of({"1.2B", tensor}).seconds, tensor == 8, "", tensor == 1 ? "by definition" : "");
  }
  add("8.3B on 512 GPUs", "PFLOP/s", 15.1, largest.rate() * 512 / 1e15);
  const Outcome trained = outcome_of({"8.3B-24-heads", 8, 64});
  add("whole run", "days", 9.2, trained.seconds * kUpdates / kSecondsOfDay, false, "", kDays);
  add("whole run", "ZettaFLOP", 12, trained.operations * kUpdates / 1e21, false, "", kZetta);
  const Cluster cluster = find_cluster("dgx-2h", 512);
  for (const Constant& constant : all_constants(cluster)) {
    if (constant.from.find("fitted") != std::string::npos) result.fitted.push_back(constant);
  }
  return result;
}

}  // namespace teratron::plan

// Llama 3.1 405B (arXiv 2407.21783, Table 4) on hosts of eight H100 with a port of 400 Gb/s each. The paper does not
// say how many stages a rank has of its interleaved schedule; one layer fewer than elsewhere is in the first and the
// last.
#include <fmt/ranges.h>

#include <vector>

#include "cluster/cluster_file.h"
#include "model/presets.h"
#include "pipeline/token_slices.h"
#include "plan/costs/step_time.h"
#include "plan/reproduction/judgement.h"
#include "plan/reproduction/reproduction.h"

namespace teratron::plan {
namespace llama3 {
namespace {

constexpr const char* kPreset = "llama-3.1-405b";
// Tokens of a sequence on each of the ranks that split it.
constexpr std::int64_t kShare = 8192, kTensor = 8, kStages = 16, kVirtual = 4, kSlices = 4;

struct Row {
  std::int64_t data, sequences;   // copies, and sequences of each
  double teraflops, utilization;  // of each GPU; the peak's share in per cent
  std::int64_t context = 1;       // ranks that split a sequence

  std::int64_t devices() const { return kTensor * context * kStages * data; }
  std::int64_t tokens() const { return kShare * context; }  // of a sequence
};
constexpr Row kRows[] = {{64, 32, 430, 43}, {128, 16, 400, 41}, {8, 16, 380, 38, 16}};

constexpr const char* kCause =
    "the paper's schedule also chooses how many micro-batches run in a row, so that sums over copies and messages "
    "hide, "
    "and its virtual stages are not published; no constant was fitted to an H100";

// Teratron's slices of tokens, or the paper's interleaved stages.
TrainConfig config_of(const Row& row, bool is_teratron) {
  TrainConfig config;
  const ModelPreset& preset = find_model_preset(kPreset);
  preset.apply_to(config.model.config);
  config.model.preset = kPreset;
  config.model.config.vocab_size = preset.vocabulary;
  config.model.config.max_position_embeddings = kShare;
  config.model.seq_length = kShare;
  config.batch.micro_batch_size = 1;
  config.batch.global_batch_size = row.sequences * row.data * row.context;
  config.layout.tensor_parallel = kTensor;
  config.layout.pipeline_parallel = kStages;
  config.layout.data_parallel = row.data * row.context;
  config.layout.sequence_parallel = true;
  config.layout.distributed_optimizer = true;
  config.backend.bf16 = true;
  std::vector<std::int64_t> layers;  // of each cell
  if (is_teratron) {
    config.pipeline.schedule = pipeline::ScheduleKind::kSeq1F1B;
    config.pipeline.token_slices = fmt::format("uniform:{}", kSlices);
    layers = pipeline::even_slices(config.model.config.num_layers, static_cast<int>(kStages));
  } else {
    config.pipeline.schedule = pipeline::ScheduleKind::kInterleaved;
    config.pipeline.virtual_stages = kVirtual;
    layers.assign(kStages * kVirtual, 2);
    layers.front() = layers.back() = 1;
  }
  config.pipeline.layout = fmt::format("{}", fmt::join(layers, ","));
  return config;
}

double utilization(const Row& row, bool is_teratron) {
  const TrainConfig config = config_of(row, is_teratron);
  const ModelConfig& model = config.model.config;
  const StepTime time = predict_step(config, find_cluster("dgx-h100", row.devices()), model.vocab_size,
                                     {.ranks = row.context, .is_ring = false});
  // Operations of whole sequences, not of the shares that the configuration has.
  return time.flops_utilization * model.training_flops_per_token(row.tokens()) / model.training_flops_per_token(kShare);
}

std::string assumed_of(const Row& row) {
  return fmt::format(
      "{} sequences of {} tokens for each copy, one at a time; ours: {} virtual stages, which the paper does not give; "
      "{}",
      row.sequences, row.tokens(), kVirtual,
      row.context > 1 ? "operations with the causal half of attention"
                      : fmt::format("Teratron: seq1f1b, {} slices", kSlices));
}

void add(const Row& row, std::vector<ReproducedCell>& cells) {
  const double peak = find_cluster("dgx-h100", row.devices()).device.peak_16, ours = utilization(row, false);
  std::optional<double> teratron;  // none where sequences are split, which it cannot
  if (row.context == 1) teratron = utilization(row, true);
  const auto of_teratron = [&](double unit) { return teratron ? std::optional(*teratron * unit) : std::nullopt; };
  const std::string table = fmt::format("{} GPUs: TP {}, {}PP {}, DP {}", row.devices(), kTensor,
                                        row.context > 1 ? fmt::format("CP {}, ", row.context) : "", kStages, row.data);
  cells.push_back({.table = table,
                   .name = "rate",
                   .unit = "TFLOP/s",
                   .source = "Table 4",
                   .published = row.teraflops,
                   .ours = ours * peak / 1e12,
                   .teratron = of_teratron(peak / 1e12),
                   .assumed = assumed_of(row)});
  if (!is_met(cells.back())) cells.back().cause = kCause;
  cells.push_back({.table = table,
                   .name = "share of the peak",
                   .unit = "%",
                   .source = "Table 4",
                   .published = row.utilization,
                   .ours = 100 * ours,
                   .teratron = of_teratron(100),
                   .uncounted = "derived"});
}

}  // namespace
}  // namespace llama3

Reproduction reproduce_llama3() {
  std::vector<ReproducedCell> cells;
  for (const llama3::Row& row : llama3::kRows) llama3::add(row, cells);
  return {.title =
              "Llama 3.1 405B on H100 (arXiv 2407.21783, Table 4; its third row splits sequences over ranks, which "
              "Teratron cannot)",
          .cells = std::move(cells),
          .curves = {},
          .slicings = {},
          .ranking = std::nullopt,
          .fitted = fitted_constants(find_cluster("dgx-h100", llama3::kRows[0].devices()))};
}

}  // namespace teratron::plan

// Seq1F1B (arXiv 2406.03488) beside Megatron-LM's schedules, on A100.
#include <fmt/ranges.h>

#include <algorithm>

#include "cluster/cluster_file.h"
#include "pipeline/memory.h"
#include "plan/costs/rank_parameters.h"
#include "plan/costs/step_time.h"
#include "plan/reproduction/judgement.h"
#include "plan/reproduction/published_gpt.h"
#include "plan/reproduction/reproduction.h"
#include "plan/reproduction/seq1f1b_published.h"
#include "train/plans/memory_plan.h"

namespace teratron::plan {
namespace seq1f1b {
namespace {

constexpr std::int64_t kWords = 50257;  // of the program's tokenizer, GPT-2's
constexpr double kGiB = 1024.0 * 1024 * 1024;

// Both runs of Seq1F1B with so many tokens take the published time with this start of a kernel.
constexpr std::int64_t kFittedTokens = 32768;
constexpr double kKernelStart = 66.5e-6;

Cluster papers_cluster(std::int64_t devices) {
  Cluster cluster = find_cluster("dgx-a100", devices);
  cluster.constants.push_back({"kernel_start", kKernelStart, "fitted to Seq1F1B's cells (docs/plan.md)"});
  return cluster;
}

// Slices of as many operations each, multiples of `unit` tokens.
std::vector<std::int64_t> equal_slices(const ModelConfig& model, std::int64_t tokens, std::int64_t unit) {
  const auto operations = [&](std::int64_t length) {
    return static_cast<double>(length) * model.training_flops_per_token(length);
  };
  std::vector<std::int64_t> lengths;
  std::int64_t begin = 0;
  for (int slice = 1; slice <= kSlices; ++slice) {
    const double share = operations(tokens) * slice / kSlices;
    std::int64_t end = begin;
    while (end < tokens && operations(end) < share) end += unit;
    lengths.push_back(end - begin);
    begin = end;
  }
  return lengths;
}

TrainConfig config_of(const Model& model, std::int64_t tokens, std::int64_t micro_batches, const Method& method) {
  TrainConfig config = plan::config_of({.layers = model.layers,
                                        .hidden = model.hidden,
                                        .heads = model.heads,
                                        .vocabulary = kWords,
                                        .tokens = tokens,
                                        .tensor = model.tensor,
                                        .stages = model.stages},
                                       1, micro_batches);
  ModelConfig& shape = config.model.config;
  shape.rotary_share = 1;
  shape.untied_output = true;
  shape.hidden_dropout = shape.attention_dropout = 0;
  config.layout.sequence_parallel = model.tensor > 1;
  config.pipeline.schedule = method.schedule;
  config.pipeline.virtual_stages = method.is_interleaved ? kVirtualStages : 1;
  if (method.is_sliced) {
    config.pipeline.token_slices = fmt::format("{}", fmt::join(equal_slices(shape, tokens, model.tensor), ","));
  }
  return config;
}

// Bytes of the fullest rank of the paper's program, counted: 18 a parameter; 34 a token and column of a layer's
// activations (arXiv 2205.05198, section 4), and 8 for each of a head's, of which every rank keeps sines and cosines
// for queries and keys; of slices, keys and values of whole sequences and, once, their gradients; logits in 16 bits, in
// fp32 and their gradient.
double papers_bytes(const TrainConfig& config) {
  constexpr double kOfParameter = 18, kOfActivation = 34, kOfAngle = 8, kOfCache = 4, kOfLogit = 10;
  const ModelConfig& model = config.model.config;
  const PipelinePlan plan = plan_pipeline(config);
  const auto tensor = static_cast<double>(config.layout.tensor_parallel);
  const std::vector<std::int64_t> whole = {config.model.seq_length};
  const std::vector<std::int64_t>& slices = plan.slices_of(0).empty() ? whole : plan.slices_of(0);
  const RankParameters parameters = rank_parameters(model, config.layout.tensor_parallel);
  const auto stages = static_cast<std::size_t>(config.layout.pipeline_parallel);
  const double layers = static_cast<double>(model.num_layers) / static_cast<double>(stages);
  const double tokens = static_cast<double>(config.model.seq_length) * layers;  // of all layers of a stage
  const double columns = static_cast<double>(model.hidden_size) / tensor;
  const double activations = kOfActivation * columns + kOfAngle * static_cast<double>(model.head_size());
  const std::vector<pipeline::MemoryPeak> peaks = pipeline::memory_peaks(plan.schedule, slices);
  double most = 0;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    double held = layers * parameters.layer, logits = 0;
    if (stage == 0) held += parameters.embedding;
    if (stage + 1 == stages) {
      held += parameters.head;
      logits = kOfLogit * static_cast<double>(slices.front() * model.vocab_size) / tensor;
    }
    const double live = peaks[stage].micro_batches, caches = slices.size() > 1 ? kOfCache * columns * (live + 1) : 0;
    most = std::max(most, kOfParameter * held + tokens * (activations * live + caches) + logits);
  }
  return most;
}

double teratrons_bytes(const TrainConfig& config) {
  return static_cast<double>(std::ranges::max(
      planned_memory(config, {.vocab_size = kWords, .compute_dtype = config.backend.compute_dtype()})));
}

constexpr const char* kSlowInterleaving =
    "by this table slices on interleaved stages are slower than either alone; nothing in the model makes them so";
constexpr const char* kReserved =
    "the published bytes are what PyTorch's allocator reserved, so the fragments between its blocks too; ours are "
    "counted tensors";

void add_throughput(Reproduction& reproduction) {
  const Model& model = kOfThroughput;
  const Cluster cluster = papers_cluster(model.devices()), teratrons = find_cluster("dgx-a100", model.devices());
  for (const Throughput& row : kThroughput) {
    const std::string table = fmt::format("{} on {} GPUs, {} sequences of {} tokens", model.name, model.devices(),
                                          row.micro_batches, row.tokens);
    std::array<ReproducedCell, kMethods.size()> cells;
    for (std::size_t i = 0; i < kMethods.size(); ++i) {
      if (row.tokens_a_second[i] == 0) continue;
      const TrainConfig config = config_of(model, row.tokens, row.micro_batches, kMethods[i]);
      cells[i] = {.table = table,
                  .name = std::string(kMethods[i].name),
                  .unit = "k tokens/s",
                  .source = "its table of the 7B",
                  .published = row.tokens_a_second[i] / 1e3,
                  .ours = predict_step(config, cluster, kWords).tokens_per_second / 1e3,
                  .teratron = predict_step(config, teratrons, kWords).tokens_per_second / 1e3,
                  .is_fitted = i == kSeq1F1B && row.tokens == kFittedTokens};
      if (contradicts_itself(row, i)) cells[i].uncounted = "contradictory";
      if (i == kSeq1F1BI && !is_met(cells[i])) cells[i].cause = kSlowInterleaving;
      reproduction.cells.push_back(cells[i]);
    }
    for (const Place other : {k1F1B, k1F1BI}) {
      if (row.tokens_a_second[other] == 0 || contradicts_itself(row, kSeq1F1B)) continue;
      reproduction.cells.push_back(ratio_of(cells[kSeq1F1B], cells[other]));
    }
  }
}

void add_memory(Reproduction& reproduction) {
  int out_of_memory = 0, ours_out = 0, teratrons_out = 0;
  for (const Memory& row : kMemory) {
    const Model& model = row.model;
    const double room = find_cluster("dgx-a100", model.devices()).device.memory;
    const std::string table = fmt::format("{} on {} GPUs, {} tokens", model.name, model.devices(), row.tokens);
    std::array<ReproducedCell, kMethods.size()> cells;
    for (std::size_t i = 0; i < kMethods.size(); ++i) {
      const TrainConfig config = config_of(model, row.tokens, 2 * model.stages, kMethods[i]);
      const double ours = papers_bytes(config), teratron = teratrons_bytes(config);
      if (row.gib[i] == 0) {
        ++out_of_memory;
        ours_out += ours > room ? 1 : 0;
        teratrons_out += teratron > room ? 1 : 0;
        continue;
      }
      cells[i] = {.table = table,
                  .name = std::string(kMethods[i].name),
                  .unit = "GiB",
                  .source = "figure of memory",
                  .published = row.gib[i],
                  .ours = ours / kGiB,
                  .teratron = teratron / kGiB};
      if (!is_met(cells[i])) cells[i].cause = kReserved;
      reproduction.cells.push_back(cells[i]);
    }
    if (row.gib[k1F1B] == 0) continue;
    reproduction.cells.push_back(ratio_of(cells[kSeq1F1B], cells[k1F1B]));
    if (!is_met(reproduction.cells.back())) reproduction.cells.back().cause = kReserved;
  }
  reproduction.cells.push_back({.table = "all models",
                                .name = "out of memory",
                                .unit = "runs",
                                .source = "figure of memory",
                                .published = static_cast<double>(out_of_memory),
                                .ours = static_cast<double>(ours_out),
                                .teratron = static_cast<double>(teratrons_out)});
}

}  // namespace
}  // namespace seq1f1b

Reproduction reproduce_seq1f1b() {
  Reproduction result{.title =
                          "Seq1F1B on A100 (arXiv 2406.03488, by the table and the figure that its authors keep beside "
                          "their program; its Tables 1 to 4 were not at hand)"};
  seq1f1b::add_throughput(result);
  seq1f1b::add_memory(result);
  result.fitted = fitted_constants(seq1f1b::papers_cluster(seq1f1b::kOfThroughput.devices()));
  return result;
}

}  // namespace teratron::plan

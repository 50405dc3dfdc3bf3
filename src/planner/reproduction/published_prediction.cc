#include "reproduction/published_prediction.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "cluster/cluster_file.h"
#include "plan/costs/step_time.h"

namespace teratron::plan {
namespace {

// Shares of a layer's forward that a program's kinds of recompute make again.
struct Again {
  double products = 0, points = 0, attention = 0, collectives = 0;
};

Again published_again(const PublishedRun& run) {
  const ModelConfig& m = run.model;
  const auto h = static_cast<double>(m.hidden_size), wide = static_cast<double>(m.ffn_hidden_size());
  const double head_columns = static_cast<double>(m.head_size()),
               queries = head_columns * static_cast<double>(m.num_attention_heads),
               keys = head_columns * static_cast<double>(m.key_value_heads());
  const double qkv = h * (queries + 2 * keys), out = h * queries, up = h * wide * (m.gated_mlp ? 2 : 1),
               all = qkv + out + up + h * wide;
  // Every second product; outputs of attention and of reduce-scatters are kept, gathers of rows are made again.
  if (run.recomputes("ops")) return {.products = 0.5, .points = 1, .collectives = 0.5};
  if (run.recomputes("layers")) return {.products = 0.5, .points = 0.5, .attention = 0.5};  // every second layer
  constexpr double kNorms = 0.3, kActivation = 0.3, kProjections = 0.4;  // of a layer's passes over memory
  Again again;
  if (run.recomputes("norm")) again.points += kNorms;
  if (run.recomputes("swiglu") || run.recomputes("ffn")) again.points += kActivation;
  if (run.recomputes("ffn")) again.products += up / all;
  if (run.recomputes("qkv") || run.recomputes("att")) {
    again.products += qkv / all;
    again.points += kProjections;
  }
  if (run.recomputes("att")) {
    again.products += out / all;
    again.attention = 1;
  }
  return again;
}

// Bytes a second between a card and its host's memory, each way: 80 % of PCIe's rate.
double host_bandwidth(const PublishedRun& run) {
  const bool is_pcie4 = run.cluster == "rtx-4090" || run.cluster == "l40s" || run.cluster == "rtx-5060-ti";
  return 0.8 * (is_pcie4 ? 31.5e9 : 63e9);
}

// Transfers of what lies in the host's memory: beside the passes, and of the update, which waits for them.
struct HostSeconds {
  double beside = 0, update = 0;
};

HostSeconds host_seconds(const PublishedRun& run, double share) {
  const auto parameters = static_cast<double>(run.model.parameters()), data = static_cast<double>(run.data());
  const double element = 2, rate = host_bandwidth(run);
  const double rounds = static_cast<double>(run.batch) / static_cast<double>(run.micro_batch) / data;
  HostSeconds seconds;
  for (const std::string_view state : {"opt-m", "opt-v", "master"}) {
    if (run.offloads(state)) seconds.update += 2 * element * parameters / data / (share * rate);  // there and back
  }
  const double rows = static_cast<double>(run.micro_batch * run.tokens);
  const double residuals = rows * static_cast<double>(run.model.hidden_size * run.model.num_layers) * element;
  if (run.offloads("residual")) seconds.beside += rounds * 2 * residuals / rate;
  const bool streams_weights = run.sharding == DataSharding::kWeights && run.data() == 1;
  if (streams_weights) seconds.beside += rounds * 2 * parameters * (run.offloads("quants") ? 1 : element) / rate;
  if (run.offloads("gradients")) seconds.beside += rounds * parameters * element / rate;
  return seconds;
}

void set(Cluster& cluster, std::string name, double value) {
  std::erase_if(cluster.constants, [&](const Constant& constant) { return constant.name == name; });
  cluster.constants.push_back({std::move(name), value, "of the published run"});
}

void set_program(Cluster& cluster, const PublishedRun& run) {
  const bool is_megatron =
      run.program == "selene" || run.program == "megatron-gpt" || run.program == "vtrain" || run.program == "bloom";
  if (is_megatron && generation_of(cluster.device.name) == "Ampere") {
    set(cluster, "writes_scores", 1);
    set(cluster, "score_passes", 3);  // a product writes them, a fused softmax reads and writes them
  }
  if (run.program == "llmq") {
    set(cluster, "update_bytes", 18);  // moments and weights of 16 bits read and written, the gradient read three times
    set(cluster, "loss_passes", 3);    // logits are written, then read and replaced by their gradient in one kernel
  }
  // Megatron Core: gathers of updated weights run beside the next step's forward. LLMQ gathers weights that it has in 8
  // bits.
  if (program_scope_of(run) == "megatron-core" || program_scope_of(run) == "nemo")
    set(cluster, "gather_slowdown", 0.01);
  if (run.program == "llmq" && run.is_fp8 && run.sharding == DataSharding::kWeights)
    set(cluster, "gather_slowdown", 0.5);
  set(cluster, "gradient_bytes", run.program == "llmq" || !run.sums_in_fp32 ? 2 : 4);
  set(cluster, "recomputes_all", run.program == "llmq" ? 0 : 1);
  set(cluster, "fp8_products", run.is_fp8 ? 1 : 0);
  const Again again = published_again(run);
  set(cluster, "again_products", again.products);
  set(cluster, "again_points", again.points);
  set(cluster, "again_attention", again.attention);
  set(cluster, "again_collectives", again.collectives);
}

void set_scope(Cluster& cluster, std::string_view scope, const RunConstants& constants) {
  for (const auto& [name, value] : constants) {
    if (!name.starts_with(std::string(scope) + " ") || name.ends_with(" host_share")) continue;
    set(cluster, name.substr(scope.size() + 1), value);
  }
}

double value_of(const RunConstants& constants, std::string_view scope, std::string_view name, double missing) {
  const auto found = constants.find(fmt::format("{} {}", scope, name));
  return found == constants.end() ? missing : found->second;
}

Cluster card_of(const PublishedRun& run, const RunConstants& constants) {
  Cluster cluster = find_cluster(run.cluster, run.devices);
  const double power = value_of(constants, cluster.device.name, "power", 1);
  cluster.device.peak_16 *= power;
  cluster.device.peak_8 *= power;
  if (cluster.links.size() > 1) cluster.links.back().bandwidth *= run.network;
  return cluster;
}

// NeMo counts attention without a mask: twice the causal half.
double llama_teraflops(const PublishedRun& run, double seconds) {
  const ModelConfig& m = run.model;
  const auto columns = static_cast<double>(m.num_attention_heads * m.head_size());
  const double masked = 6 * static_cast<double>(m.num_layers) * static_cast<double>(run.tokens) * columns;
  return (m.training_flops_per_token(run.tokens) + masked) * tokens_per_second_of(run, seconds) / 1e12;
}

}  // namespace

std::string_view generation_of(std::string_view card) {
  const auto begins = [&](std::string_view text) { return card.starts_with(text); };
  if (begins("V100")) return "Volta";
  if (begins("A100")) return "Ampere";
  if (begins("H100") || begins("H200")) return "Hopper";
  return begins("RTX 4") || begins("L40") ? "Ada" : "Blackwell";
}

std::string program_scope_of(const PublishedRun& run) {
  if (run.program == "torchtitan" && !run.is_compiled) return "torchtitan-eager";
  if (run.program == "dgxc") return "nemo";
  return run.program == "megatron-gpt" && run.cluster == "dgx-h100" ? "megatron-core" : run.program;
}

Cluster teratrons_cluster_of(const PublishedRun& run, const RunConstants& constants) {
  Cluster cluster = card_of(run, constants);
  set_scope(cluster, generation_of(cluster.device.name), constants);
  return cluster;
}

Cluster cluster_of(const PublishedRun& run, const RunConstants& constants) {
  Cluster cluster = card_of(run, constants);
  set_program(cluster, run);
  set_scope(cluster, generation_of(cluster.device.name), constants);
  set_scope(cluster, program_scope_of(run), constants);
  return cluster;
}

TrainConfig config_of(const PublishedRun& run) {
  TrainConfig config;
  config.model.config = run.model;
  config.model.seq_length = run.tokens / run.context;  // a rank's share
  config.batch.micro_batch_size = run.micro_batch;
  config.batch.global_batch_size = run.batch * run.context;
  config.layout.tensor_parallel = run.tensor;
  config.layout.pipeline_parallel = run.stages;
  config.layout.data_parallel = run.copies();
  config.layout.sequence_parallel = run.sequence_parallel || (run.program == "torchtitan" && run.tensor > 1);
  config.layout.data_sharding = run.sharding;
  config.layout.distributed_optimizer = run.sharding != DataSharding::kNone;
  if (run.recomputes("block")) config.layout.recompute = name_of(Recompute::kFull);
  if (run.recomputes("scores")) config.layout.recompute = name_of(Recompute::kSelective);
  config.backend.bf16 = true;
  config.pipeline.schedule = run.cells > 1 ? pipeline::ScheduleKind::kInterleaved : pipeline::ScheduleKind::k1F1B;
  config.pipeline.virtual_stages = run.cells;
  return config;
}

double step_seconds_of(const PublishedRun& run, const RunConstants& constants) {
  const double seconds = predict_step(config_of(run), cluster_of(run, constants), run.model.vocab_size,
                                      {.ranks = run.context, .is_ring = run.is_ring})
                             .seconds;
  const HostSeconds host = host_seconds(run, value_of(constants, program_scope_of(run), "host_share", 1));
  return std::max(seconds, host.beside) + host.update;
}

double tokens_per_second_of(const PublishedRun& run, double seconds) {
  return static_cast<double>(run.batch * run.tokens) / seconds / static_cast<double>(run.devices);
}

double teraflops_of(const PublishedRun& run, double seconds) {
  if (run.model.kind == ModelKind::kLlama) return llama_teraflops(run, seconds);
  const auto l = static_cast<double>(run.model.num_layers), h = static_cast<double>(run.model.hidden_size),
             s = static_cast<double>(run.tokens), v = static_cast<double>(run.model.vocab_size);
  // Their section 5.1: 96 B s l h^2 (1 + s / 6h + V / 16lh) with the forward that is made again; without it, three
  // quarters of what the layers take.
  const double layers = (run.counts_recompute ? 96 : 72) * l * h * h * (1 + s / (6 * h)), head = 6 * h * v;
  return (layers + head) * tokens_per_second_of(run, seconds) / 1e12;
}

}  // namespace teratron::plan

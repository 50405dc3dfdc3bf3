#include "reproduction/published_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/files/checksum.h"
#include "options/toml_parsing.h"
#include "reproduction/data_words.h"

namespace teratron::plan {
namespace {

constexpr std::string_view kConstants = "constants", kCauses = "causes";

toml::table parse_file(std::string_view name) {
  return parse_toml(text_of(all_published_files(), name), std::string(name));
}

std::optional<double> number_of(const toml::table& table, std::string_view key) {
  return table[key].is_number() ? table[key].value<double>() : std::nullopt;
}

std::int64_t integer_of(const toml::table& table, std::string_view key, std::int64_t missing) {
  return table[key].value_or(missing);
}

DataSharding sharding_of(const toml::table& run) {
  return value_of_word<DataSharding>(run, "sharding",
                                     {{"", DataSharding::kNone},
                                      {"none", DataSharding::kNone},
                                      {"optimizer", DataSharding::kOptimizer},
                                      {"gradients", DataSharding::kGradients},
                                      {"weights", DataSharding::kWeights}});
}

// Whether teraflops have the forward that is made again.
bool counts_recompute(const toml::table& run) {
  return value_of_word<bool>(
      run, "counts",
      {{"", false}, {"2104.04473", true}, {"2104.04473 without recompute", false}, {"scores without a mask", false}});
}

ModelConfig model_of(const toml::table& table) {
  ModelConfig model;
  model.set_kind(value_of_word<ModelKind>(
      table, "family", {{"gpt2", ModelKind::kGpt2}, {"llama", ModelKind::kLlama}, {"qwen2", ModelKind::kQwen2}}));
  model.num_layers = integer_of(table, "layers", 0);
  model.hidden_size = integer_of(table, "hidden", 0);
  model.num_attention_heads = integer_of(table, "heads", 0);
  model.num_key_value_heads = integer_of(table, "key_heads", 0);
  model.intermediate_size = integer_of(table, "wide", 0);
  model.vocab_size = integer_of(table, "vocabulary", 0);
  if (table["tied"].value_or(false)) model.untied_output = false;
  return model;
}

PublishedRun run_of(const toml::table& table) {
  PublishedRun run{.name = table["name"].value_or(std::string()),
                   .table = table["table"].value_or(std::string()),
                   .source = table["source"].value_or(std::string()),
                   .assumed = table["assumed"].value_or(std::string()),
                   .cluster = table["cluster"].value_or(std::string())};
  run.devices = integer_of(table, "devices", 1);
  run.tokens = integer_of(table, "tokens", 0);
  run.micro_batch = integer_of(table, "micro_batch", 1);
  run.batch = integer_of(table, "batch", 1);
  run.tensor = integer_of(table, "tensor", 1);
  run.stages = integer_of(table, "stages", 1);
  run.cells = integer_of(table, "virtual", 1);
  run.context = integer_of(table, "context", 1);
  run.network = number_of(table, "network").value_or(1);
  run.is_ring = table["ring"].value_or(false);
  run.sequence_parallel = table["sequence_parallel"].value_or(false);
  run.is_fp8 = value_of_word<bool>(table, "precision", {{"", false}, {"bf16", false}, {"fp8", true}});
  run.sums_in_fp32 = table["mixed"].value_or(true);
  run.is_compiled = table["compiled"].value_or(true);
  run.loss_is_compiled = table["compiled_loss"].value_or(false);
  run.sharding = sharding_of(table);
  run.recompute =
      words_of(table, "recompute", {"block", "scores", "layers", "ops", "norm", "swiglu", "ffn", "qkv", "att"});
  run.offload = words_of(table, "offload", {"opt-m", "opt-v", "master", "quants", "residual", "gradients"});
  run.tokens_per_second = number_of(table, "tokens_per_second");
  run.teraflops = number_of(table, "teraflops");
  run.step_seconds = number_of(table, "step_seconds");
  run.memory_gib = number_of(table, "memory_gib");
  run.state_gib = number_of(table, "state_gib");
  run.activations_gib = number_of(table, "activations_gib");
  run.counts_recompute = counts_recompute(table);
  return run;
}

}  // namespace

std::vector<PublishedFile> published_files() {
  std::vector<PublishedFile> files;
  for (const PublishedFile& file : all_published_files()) {
    if (file.name != kConstants && file.name != kCauses) files.push_back(file);
  }
  return files;
}

RunConstants run_constants() {
  RunConstants constants;
  const toml::table scopes = parse_file(kConstants);
  for (const auto& [scope, table] : scopes) {
    for (const auto& [name, value] : *table.as_table()) {
      constants[fmt::format("{} {}", scope.str(), name.str())] = value.value_or(0.0);
    }
  }
  return constants;
}

std::map<std::string, std::string> published_causes() {
  std::map<std::string, std::string> causes;
  const toml::table programs = parse_file(kCauses);
  for (const auto& [program, table] : programs) {
    for (const auto& [run, cause] : *table.as_table()) {
      causes[fmt::format("{}: {}", program.str(), run.str())] = cause.value_or(std::string());
    }
  }
  return causes;
}

bool PublishedRun::recomputes(std::string_view part) const { return std::ranges::count(recompute, part) > 0; }
bool PublishedRun::offloads(std::string_view part) const { return std::ranges::count(offload, part) > 0; }

bool PublishedRun::is_for_fitting() const {
  const char last = checksum_of(std::string_view(name)).back();  // a hexadecimal digit
  return (last - (last <= '9' ? '0' : 'a')) % 2 == 0;
}

std::vector<PublishedRun> published_runs(const PublishedFile& file) {
  const toml::table text = parse_toml(file.text, std::string(file.name));
  std::map<std::string_view, ModelConfig> models;
  for (const toml::node& node : *text["models"].as_array()) {
    models[(*node.as_table())["name"].value_or(std::string_view())] = model_of(*node.as_table());
  }
  std::vector<PublishedRun> runs;
  for (const toml::node& node : *text["runs"].as_array()) {
    const toml::table& table = *node.as_table();
    PublishedRun run = run_of(table);
    run.program = file.name;
    if (run.source.empty()) run.source = text["source"].value_or(std::string());
    run.model = value_of_word(table, "model", models);
    run.model.max_position_embeddings = run.tokens;
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string title_of(const PublishedFile& file) {
  return parse_toml(file.text, std::string(file.name))["title"].value_or(std::string());
}

}  // namespace teratron::plan

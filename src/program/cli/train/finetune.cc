// teratron finetune: trains a BERT for MNLI, QQP, SQuAD, RACE or anyone's labels, and scores it.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/eval/scoring.h"
#include "cli/report.h"
#include "finetune/finetuning.h"

namespace teratron {
namespace {

nlohmann::ordered_json json_of(const FinetuneResult& result) {
  nlohmann::ordered_json json = {{"valid", json_of(result.validation)}};
  json["test"] = result.test.empty() ? nlohmann::ordered_json() : json_of(result.test);
  return json;
}

std::string text_of(std::string_view name, const FinetuneResult& result) {
  std::string text = fmt::format("{}: {}", name, text_of(result.validation));
  if (!result.test.empty()) text += fmt::format("; test: {}", text_of(result.test));
  return text + "\n";
}

nlohmann::ordered_json json_of(const SearchPoint& point) {
  return {{"global_batch_size", point.batch}, {"lr", point.learning_rate}};
}

nlohmann::ordered_json json_of(const std::vector<SearchedPoint>& points) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const SearchedPoint& each : points) {
    json.push_back(json_of(each.point));
    json.back()["iteration"] = each.iteration;
    json.back()["valid"] = each.validation.empty() ? nlohmann::ordered_json() : json_of(each.validation);
  }
  return json;
}

void report_results(const FinetuneConfig& config, const FinetuneResults& results) {
  const std::vector<FinetuneResult>& runs = results.runs;
  nlohmann::ordered_json json = {{"task", name_of(config.task)}};
  std::string text;
  if (!results.points.empty()) {
    json["search"] = json_of(results.points);
    json["chosen"] = json_of(results.points[results.chosen].point);
    text += search_table(results.points, results.chosen);
  }
  json["runs"] = nlohmann::ordered_json::array();
  for (const FinetuneResult& run : runs) {
    nlohmann::ordered_json one = {{"seed", run.seed}, {"iteration", run.iteration}};
    one.update(json_of(run));
    json["runs"].push_back(one);
    text += text_of(fmt::format("seed {}, after iteration {}", run.seed, run.iteration), run);
  }
  if (runs.size() > 1) {
    const FinetuneResult& median = runs[results.median];
    json["median"] = {{"seed", median.seed}};
    json["median"].update(json_of(median));
    text += text_of(fmt::format("median, seed {}", median.seed), median);
  }
  if (results.ensemble) {
    json["ensemble"] = json_of(*results.ensemble);
    text += text_of(fmt::format("ensemble of {}", runs.size()), *results.ensemble);
  }
  json["peak_memory_bytes"] = results.peak_memory;
  report(config.run.output.json, text, json);
}

}  // namespace

Command finetune_command() {
  Command command = make_command<FinetuneConfig>(
      "finetune", "trains a BERT for a task: MNLI, QQP, SQuAD, RACE, or labels of your own", nullptr);
  command.run = [](std::span<const std::string> arguments) {
    FinetuneConfig config = read_finetune_config(arguments);
    require_files(fields_of(config));
    const FinetuneResults results = finetune(config);
    if (!results.runs.empty() && results.is_complete) report_results(config, results);
    if (results.signal != 0) throw EndedBySignal(results.signal);
  };
  return command;
}

}  // namespace teratron

#include "cli/eval/scoring.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>

#include "cli/report.h"
#include "console/long_task.h"
#include "runtime/loaded_model.h"

namespace teratron {

Faults EvaluationOptions::faults() const {
  Faults faults = layout.faults();
  faults.add(backend.faults());
  return faults;
}

void add_evaluation_fields(FieldList& list, EvaluationOptions& o, std::string_view items) {
  list.add("tokenizer", &o.tokenizer, "DIR", "default: the tokenizer saved with the model");
  list.add("micro-batch-size", &o.batch, "N", fmt::format("{} computed at a time", items)).between(1, 1 << 16);
  add_model_parallel_fields(list, o.layout);
  add_data_parallel_field(list, o.layout, fmt::format("copies of the model, each with its share of the {}", items));
  add_process_fields(list, o.layout);
  add_json_field(list, o.json);
  add_loaded_backend_fields(list, o.backend);
}

Faults ScoringOptions::faults() const {
  Faults faults = EvaluationOptions::faults();
  faults.add_if(stride < 0, "{} is {}; it must not be negative", Flag{"overlapping-eval"}, stride);
  return faults;
}

void add_scoring_fields(FieldList& list, ScoringOptions& o, std::string stride_help) {
  list.add("overlapping-eval", &o.stride, "N", std::move(stride_help));
  add_evaluation_fields(list, o, "windows");
}

ScoringObserver show_scoring(const Rank& rank, bool compares) {
  if (!rank.is_first()) return [](const ScoringState&) {};
  const auto share = std::make_shared<std::atomic<double>>(0);
  const auto task = std::make_shared<LongTask>("computing the loss", [share] { return share->load(); });
  return [task, share, compares](const ScoringState& state) {
    *share = static_cast<double>(state.scored) / static_cast<double>(state.targets);
    if (compares && state.scored == state.targets) task->next("comparing with simpler models");
  };
}

std::string text_of(std::span<const TaskScore> scores) {
  std::string text;
  for (const TaskScore& score : scores) {
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : ", ", score.name, score.value);
  }
  return text;
}

nlohmann::ordered_json json_of(std::span<const TaskScore> scores) {
  nlohmann::ordered_json json;
  for (const TaskScore& score : scores) json[score.name] = score.value;
  return json;
}

}  // namespace teratron

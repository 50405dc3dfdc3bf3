// Flags and progress that the commands of `teratron eval` share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "eval/windows.h"
#include "model/language_model.h"
#include "runtime/backend_choice.h"
#include "runtime/ranks.h"
#include "settings/layout_settings.h"
#include "tasks/task.h"

namespace teratron {

struct EvaluationOptions {
  std::filesystem::path load, tokenizer, json;
  std::int64_t batch = 8;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const;
};

// Flag of EvaluationOptions::batch, for load_model().
inline constexpr std::string_view kEvaluationBatch = "--micro-batch-size";

// Adds all flags but --load. `items`: the evaluated things, for the help.
void add_evaluation_fields(FieldList& list, EvaluationOptions& options, std::string_view items);

// Options of evaluations that score a text in windows.
struct ScoringOptions : EvaluationOptions {
  std::int64_t stride = 0;

  Faults faults() const;
  ExecutorOptions executor_options() const { return {.purpose = Purpose::kEvaluation, .batch = batch}; }
};

void add_scoring_fields(FieldList& list, ScoringOptions& options, std::string stride_help);

// Observer that shows progress on the first rank. `compares`: n-gram models follow the windows
// (CorpusLossOptions::baselines).
ScoringObserver show_scoring(const Rank& rank, bool compares = false);

// Scores of a task for people and for scripts: "accuracy 71.20, f1 68.01".
std::string text_of(std::span<const TaskScore> scores);
nlohmann::ordered_json json_of(std::span<const TaskScore> scores);

}  // namespace teratron

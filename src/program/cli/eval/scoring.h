// What the commands of `teratron eval` share: their common flags, and a live line while they score.
#pragma once

#include <cstdint>
#include <filesystem>

#include "eval/windows.h"
#include "model/language_model.h"
#include "runtime/backend_choice.h"
#include "runtime/ranks.h"
#include "settings/layout_settings.h"

namespace teratron {

struct EvaluationOptions {
  std::filesystem::path load, tokenizer, json;
  std::int64_t batch = 8;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const;
};

// All flags but --load. items: what is evaluated, in the words of the help.
void add_evaluation_fields(FieldList& list, EvaluationOptions& options, std::string_view items);

// Of evaluations that score a text in windows.
struct ScoringOptions : EvaluationOptions {
  std::int64_t stride = 0;

  Faults faults() const;
  ExecutorOptions executor_options() const { return {.purpose = Purpose::kEvaluation, .batch = batch}; }
};

void add_scoring_fields(FieldList& list, ScoringOptions& options, std::string stride_help);

// Tells what is done and how long the rest will take, by the first rank alone.
ScoringObserver show_scoring(const Rank& rank);

}  // namespace teratron

// What the evaluations of `teratron eval` share: their common flags, and a live line while they score.
#pragma once

#include <cstdint>
#include <filesystem>

#include "eval/windows.h"
#include "model/language_model.h"
#include "runtime/backend_choice.h"
#include "runtime/ranks.h"
#include "settings/layout_settings.h"

namespace teratron {

struct ScoringOptions {
  std::filesystem::path load, tokenizer, json;
  std::int64_t stride = 0, batch = 8;
  LayoutSettings layout;
  BackendSettings backend;

  Faults faults() const;
  ExecutorOptions executor_options() const { return {.purpose = Purpose::kEvaluation, .batch = batch}; }
};

void add_scoring_fields(FieldList& list, ScoringOptions& options, std::string stride_help);

// Tells what is done and how long the rest will take, by the first rank alone.
ScoringObserver show_scoring(const Rank& rank);

}  // namespace teratron

// Page of a run, or of several side by side.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "html/run_record.h"

namespace teratron {

// Most runs of a page: there are as many colours of curves.
inline constexpr std::size_t kMostRuns = 8;

// Result of an evaluation: JSON that `teratron eval` wrote.
struct EvaluationResult {
  std::string name;  // "wikitext103"; of files without, the file's
  std::string file;  // its path
  std::vector<std::pair<std::string, double>> numbers;
};

// UserError: no JSON object of numbers.
EvaluationResult read_evaluation(const std::filesystem::path& file);

// Curves, what differs in the settings, the layout, data, samples, evaluations and checkpoints as one HTML page, which
// needs no network. At most kMostRuns runs, with names that differ.
std::string run_report(const std::vector<RunRecord>& runs, const std::vector<EvaluationResult>& evaluations);

}  // namespace teratron

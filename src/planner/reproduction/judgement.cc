#include "reproduction/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace teratron::plan {

CellKind kind_of(const ReproducedCell& cell) {
  if (cell.unit == "%") return CellKind::kShare;
  if (cell.unit == "x") return CellKind::kRatio;
  if (cell.unit == "GiB") return CellKind::kMemory;
  return cell.unit == "slices" || cell.unit == "runs" ? CellKind::kCount : CellKind::kAmount;
}

std::vector<std::string> bounds_of_judgement() {
  return {fmt::format("{:.0f} % of a time, a rate, memory or a number", 100 * kMostOfAmount),
          fmt::format("{:.0f} points of a percentage", kMostPoints),
          fmt::format("{:.0f} % of a ratio's distance from 1, but {} at least and {:.0f} % of the ratio at most",
                      100 * kMostOfEffect, kLeastOfRatio, 100 * kMostOfAmount)};
}

double tolerance_of(const ReproducedCell& cell) {
  switch (kind_of(cell)) {
    case CellKind::kShare: return kMostPoints;
    case CellKind::kRatio:
      return std::min(std::max(kMostOfEffect * std::abs(cell.published - 1), kLeastOfRatio),
                      kMostOfAmount * cell.published);
    default: return kMostOfAmount * cell.published;
  }
}

bool is_met(const ReproducedCell& cell) { return std::abs(cell.ours - cell.published) <= tolerance_of(cell); }

std::optional<double> error_of(const ReproducedCell& cell) {
  const double difference = cell.ours - cell.published;
  switch (kind_of(cell)) {
    case CellKind::kShare: return difference;
    case CellKind::kRatio:
      if (cell.published == 1) return std::nullopt;
      return difference / (cell.published - 1);
    default: return difference / cell.published;
  }
}

std::vector<Score> scores_of(std::span<const ReproducedCell> cells, Counted counted) {
  std::vector<Score> scores;
  for (const CellKind kind :
       {CellKind::kAmount, CellKind::kMemory, CellKind::kShare, CellKind::kRatio, CellKind::kCount}) {
    Score score{.kind = kind};
    double sum = 0, worst = 0;
    int with_error = 0;
    for (const ReproducedCell& cell : cells) {
      if (kind_of(cell) != kind || !cell.uncounted.empty()) continue;
      if (counted == Counted::kPredictions && cell.is_fitted) continue;
      ++score.cells;
      score.met += is_met(cell) ? 1 : 0;
      const std::optional<double> error = error_of(cell);
      if (!error) continue;
      ++with_error;
      sum += std::abs(*error);
      worst = std::max(worst, std::abs(*error));
    }
    if (with_error > 0) {
      score.mean_error = sum / with_error;
      score.worst_error = worst;
    }
    if (score.cells > 0) scores.push_back(score);
  }
  return scores;
}

std::string_view name_of(CellKind kind) {
  switch (kind) {
    case CellKind::kMemory: return "memory";
    case CellKind::kShare: return "percentages";
    case CellKind::kRatio: return "ratios";
    case CellKind::kCount: return "numbers";
    default: return "times and rates";
  }
}

std::string text_of_error(CellKind kind, double error) {
  if (kind == CellKind::kShare) return fmt::format("{:.1f} points", error);
  if (kind == CellKind::kRatio) return fmt::format("{:.1f} % of the effect", 100 * error);
  return fmt::format("{:.1f} %", 100 * error);
}

}  // namespace teratron::plan

// When a published cell counts as met. The judgement is of the effect that the paper shows: a slicing that is 1 %
// faster does not reproduce one that is 12 % faster, though the two ratios are only 10 % apart.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reproduction/reproduction.h"

namespace teratron::plan {

enum class CellKind { kAmount, kMemory, kShare, kRatio, kCount };  // by the unit
// "GiB", "%", "x", "slices" and "runs"; all other units are amounts of time or rates.
CellKind kind_of(const ReproducedCell& cell);

// The bounds. 10 % is the worst error that plans are held to (docs/plan.md). Papers give shares in whole per cent and
// ratios in hundredths of single runs, so that 3 points and 0.03 are about what a second run would differ by. A
// quarter of the effect keeps its size: 12 % stands for 9 to 15 %. For large ratios a quarter would be more than 10 %,
// which no time may be off.
inline constexpr double kMostOfAmount = 0.10;  // of amounts, memory and counts, relative
inline constexpr double kMostPoints = 3;       // of shares
inline constexpr double kMostOfEffect = 0.25;  // of a ratio's distance from 1 ..
inline constexpr double kLeastOfRatio = 0.03;  // .. but this at least, and kMostOfAmount of the ratio at most

std::vector<std::string> bounds_of_judgement();  // the same in words: "10 % of a time ..", ..

// The error that the cell may have, in its own unit.
double tolerance_of(const ReproducedCell& cell);
bool is_met(const ReproducedCell& cell);

// Amounts, memory and counts: relative. Shares: points. Ratios: relative to the published distance from 1; none where
// that is 0.
std::optional<double> error_of(const ReproducedCell& cell);

// Score of the counted cells of one kind.
struct Score {
  CellKind kind = CellKind::kAmount;
  int cells = 0, met = 0;
  std::optional<double> mean_error, worst_error;  // without sign, as error_of() has them; none where no cell has one
};

// One for each kind that there is.
enum class Counted { kAll, kPredictions };
std::vector<Score> scores_of(std::span<const ReproducedCell> cells, Counted counted);

std::string_view name_of(CellKind kind);                 // "times and rates"
std::string text_of_error(CellKind kind, double error);  // "4.1 %", "2.3 points", "12.0 % of the effect"; no sign

}  // namespace teratron::plan

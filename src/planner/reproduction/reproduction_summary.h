// A reproduction of very many cells in short: errors by source and half, and the largest ones.
#pragma once

#include <string>

#include "reproduction/reproduction.h"

namespace teratron::plan {

// Bounds that predictions of the judging half are held to: relative errors.
inline constexpr double kMostMeanError = 0.06, kMostWorstError = 0.20, kMostMemoryError = 0.05;
inline constexpr double kMostLostByChoice = 0.03;  // of the fastest published layout's speed

// The source of a cell: its table's name until the colon.
std::string source_of(const ReproducedCell& cell);

std::string summary_text(const Reproduction& reproduction);
std::string summary_svg(const Reproduction& reproduction);  // a point a cell: its error, in the colour of its half

}  // namespace teratron::plan

#include "ops/trials/agreement.h"

#include <fmt/ranges.h>

#include <cmath>

namespace teratron::testing {
namespace {

double root_mean_square(const Values& values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / count);
}

std::string disagreement_of(const Values& actual, const Values& expected, const Argument& argument, DType compute,
                            bool tensor_cores) {
  if (actual.size() != expected.size()) return fmt::format("{} has {} elements", argument.name, actual.size());
  const double rms = root_mean_square(expected);
  for (std::size_t e = 0; e < actual.size(); ++e) {
    const double allowed =
        allowed_error(argument.tolerance, expected[e], rms, argument.dtype(compute), compute, tensor_cores);
    const double difference = std::abs(actual[e] - expected[e]);
    const bool equal = actual[e] == expected[e] || (std::isnan(actual[e]) && std::isnan(expected[e]));
    if (equal || difference <= allowed) continue;
    return fmt::format("{}, element {}: got {}, expected {}, difference {}, allowed {}", argument.name, e, actual[e],
                       expected[e], difference, allowed);
  }
  return "";
}

}  // namespace

std::string disagreement(const Trial& trial, const Outcome& actual, const Outcome& expected, DType compute,
                         bool tensor_cores) {
  if (!actual.damaged_borders.empty()) return fmt::format("wrote around {}", fmt::join(actual.damaged_borders, ", "));
  for (const Argument& argument : trial.arguments) {
    std::string found = disagreement_of(actual.values.at(argument.name), expected.values.at(argument.name), argument,
                                        compute, tensor_cores);
    if (!found.empty()) return found;
  }
  return "";
}

}  // namespace teratron::testing

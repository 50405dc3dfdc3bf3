#include "nn/rotary.h"

#include <cmath>
#include <numbers>

namespace teratron {
namespace {

float scaled(const RotaryConfig& rotary, float frequency) {
  switch (rotary.scaling) {
    case RotaryConfig::Scaling::kNone: return frequency;
    case RotaryConfig::Scaling::kLinear: return static_cast<float>(frequency / rotary.factor);
    case RotaryConfig::Scaling::kLlama3: break;
  }
  // Whole turns within the positions that the model was first trained on.
  const double turns = static_cast<double>(rotary.first_positions) * frequency / (2 * std::numbers::pi);
  if (turns < rotary.low_frequency) return static_cast<float>(frequency / rotary.factor);
  if (turns > rotary.high_frequency) return frequency;
  const double kept = (turns - rotary.low_frequency) / (rotary.high_frequency - rotary.low_frequency);
  return static_cast<float>((1 - kept) * frequency / rotary.factor + kept * frequency);
}

}  // namespace

std::vector<float> rotary_frequencies(const RotaryConfig& rotary) {
  std::vector<float> frequencies;
  for (std::int64_t element = 0; element < rotary.elements; element += 2) {
    const double exponent = static_cast<double>(element) / static_cast<double>(rotary.elements);
    frequencies.push_back(scaled(rotary, 1.0F / static_cast<float>(std::pow(rotary.base, exponent))));
  }
  return frequencies;
}

std::vector<float> rotary_table(const RotaryConfig& rotary, std::int64_t positions) {
  const std::vector<float> frequencies = rotary_frequencies(rotary);
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(positions) * 2 * frequencies.size());
  for (std::int64_t position = 0; position < positions; ++position) {
    const auto add = [&](auto function) {
      for (const float frequency : frequencies) {
        const float angle = frequency * static_cast<float>(position);
        table.push_back(static_cast<float>(function(static_cast<double>(angle))));
      }
    };
    add([](double angle) { return std::cos(angle); });
    add([](double angle) { return std::sin(angle); });
  }
  return table;
}

}  // namespace teratron

#include "nn/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace teratron {
namespace {

using Frequencies = std::vector<float>;

float to_float(double value) { return static_cast<float>(value); }

// base^(2 r / elements) of each pair r.
Frequencies powers(const RotaryConfig& rotary) {
  Frequencies all;
  for (std::int64_t element = 0; element < rotary.elements; element += 2) {
    const float exponent = static_cast<float>(element) / static_cast<float>(rotary.elements);
    all.push_back(to_float(std::pow(double{to_float(rotary.base)}, double{exponent})));
  }
  return all;
}

float scaled_as_llama3(const RotaryConfig& rotary, float frequency) {
  const auto positions = static_cast<double>(rotary.first_positions);
  const float wave = 1 / frequency * to_float(2 * std::numbers::pi);
  if (wave > to_float(positions / rotary.low_frequency)) return frequency / to_float(rotary.factor);
  if (wave < to_float(positions / rotary.high_frequency)) return frequency;
  const float kept = (1 / wave * to_float(positions) - to_float(rotary.low_frequency)) /
                     to_float(rotary.high_frequency - rotary.low_frequency);
  return (1 - kept) * frequency / to_float(rotary.factor) + kept * frequency;
}

// Number of the pair, not rounded, that turns so many times in the positions that the model was first trained on.
double pair_of_turns(const RotaryConfig& rotary, double turns) {
  const double wave = static_cast<double>(rotary.first_positions) / (turns * 2 * std::numbers::pi);
  return static_cast<double>(rotary.elements) * std::log(wave) / (2 * std::log(rotary.base));
}

Frequencies yarn_frequencies(const RotaryConfig& rotary, const Frequencies& powers) {
  double first = pair_of_turns(rotary, rotary.high_frequency), last = pair_of_turns(rotary, rotary.low_frequency);
  if (rotary.whole_pairs) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, static_cast<double>(rotary.elements) - 1);
  if (first == last) last += 0.001;  // as transformers has it
  Frequencies all;
  for (const float power : powers) {
    const float way = (static_cast<float>(all.size()) - to_float(first)) / to_float(last - first);
    const float kept = 1 - std::clamp(way, 0.0F, 1.0F);
    all.push_back(1 / (to_float(rotary.factor) * power) * (1 - kept) + 1 / power * kept);
  }
  return all;
}

}  // namespace

std::vector<float> rotary_frequencies(const RotaryConfig& rotary) {
  Frequencies all = powers(rotary);
  if (rotary.scaling == RotaryConfig::Scaling::kYarn) return yarn_frequencies(rotary, all);
  for (float& value : all) {
    value = 1 / value;
    if (rotary.scaling == RotaryConfig::Scaling::kLinear) value /= to_float(rotary.factor);
    if (rotary.scaling == RotaryConfig::Scaling::kLlama3) value = scaled_as_llama3(rotary, value);
  }
  return all;
}

std::vector<float> rotary_table(const RotaryConfig& rotary, std::int64_t positions) {
  const std::vector<float> frequencies = rotary_frequencies(rotary);
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(positions) * 2 * frequencies.size());
  for (std::int64_t position = 0; position < positions; ++position) {
    const auto add = [&](auto function) {
      for (const float frequency : frequencies) {
        const float angle = frequency * static_cast<float>(position);
        table.push_back(to_float(function(double{angle})) * to_float(rotary.attention));
      }
    };
    add([](double angle) { return std::cos(angle); });
    add([](double angle) { return std::sin(angle); });
  }
  return table;
}

}  // namespace teratron

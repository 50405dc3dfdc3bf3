// Training configurations with random values in every field, for properties that hold whatever the values are.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "base/philox.h"
#include "model/presets.h"
#include "train/config/config.h"

namespace teratron::testing {

inline std::string random_text(RandomSequence& random) {
  // What text formats trip over: quotes, escapes, comments, line ends, control and non-ASCII characters.
  const std::vector<std::string> pieces = {"a",   "B7",     " ",       "\"",   "'",        "\\",
                                           "\n",  "\t",     "#",       "=",    "[",        "]",
                                           "'''", "\"\"\"", "\\u0041", "\x01", "\xC3\xA9", "\xF0\x9F\x98\x80"};
  std::string text;
  for (std::uint64_t length = random.below(8); length > 0; --length) text += pieces[random.below(pieces.size())];
  return text;
}

inline double random_double(RandomSequence& random) {
  while (true) {
    const std::uint64_t high = random.next_u32();
    const double value = std::bit_cast<double>((high << 32) | random.next_u32());
    if (std::isfinite(value)) return value;
  }
}

// A value of a type of field as the command line would have it.
struct RandomDraw {
  RandomSequence& random;
  std::string operator()(const std::int64_t*) const {
    const std::uint64_t high = random.next_u32();
    return std::to_string(static_cast<std::int64_t>((high << 32) | random.next_u32()) >> random.below(64));
  }
  std::string operator()(const double*) const { return fmt::format("{}", random_double(random)); }
  std::string operator()(const bool*) const { return random.below(2) == 1 ? "true" : "false"; }
  std::string operator()(const std::string*) const { return random_text(random); }
  std::string operator()(const std::filesystem::path*) const { return random_text(random); }
  std::string operator()(const std::vector<std::filesystem::path>*) const { return random_text(random); }
  std::string several(const auto* number) const {
    std::string text = (*this)(number);
    for (std::uint64_t more = random.below(4); more > 0; --more) text += " " + (*this)(number);
    return text;
  }
  std::string operator()(const std::vector<std::int64_t>*) const {
    return several(static_cast<const std::int64_t*>(nullptr));
  }
  std::string operator()(const std::vector<double>*) const { return several(static_cast<const double*>(nullptr)); }
  std::string operator()(const std::vector<std::string>*) const { return random_text(random); }
  std::string operator()(const Choice& choice) const { return choice.names[random.below(choice.names.size())]; }
};

// Some value of the field's type as the command line would have it. Presets are left to the tests that are about them.
inline std::string random_value(const Field& field, RandomSequence& random) {
  if (!field.word.first.empty() && random.below(4) == 0) return field.word.first;
  if (field.name == "model") return std::string(model_presets()[random.below(model_presets().size())].name);
  return std::visit(RandomDraw{random}, field.target);
}

}  // namespace teratron::testing

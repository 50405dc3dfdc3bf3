// Rotary positions of queries and keys (Su et al., arXiv 2104.09864): a model's configuration of them, and the table of
// cosines and sines that the layers of a stage share (ops/operations.h, Rotary).
#pragma once

#include <cstdint>
#include <vector>

#include "ops/operations.h"

namespace teratron {

struct RotaryConfig {
  std::int64_t elements = 0;  // how many of a head's first elements turn: an even number; 0: none
  double base = 10000;
  RotaryPairs pairs = RotaryPairs::kHalves;
  // Changes of the frequencies for longer sequences than a model was first trained on.
  enum class Scaling {
    kNone,
    kLinear,   // all divided by `factor` (Chen et al., arXiv 2306.15595)
    kLlama3,   // Llama 3.1's: those of waves longer than first_positions / low_frequency divided by `factor`, those
               // shorter than first_positions / high_frequency kept, between them a mean
    kDynamic,  // none up to the model's longest sequence, which no text here exceeds; kept for Hugging Face's files
    kYarn,     // Peng et al., arXiv 2309.00071: pairs that turn more than high_frequency times in first_positions kept,
               // those that turn less than low_frequency times divided by `factor`, between them a mean
  };
  Scaling scaling = Scaling::kNone;
  double factor = 1, low_frequency = 1, high_frequency = 4;
  std::int64_t first_positions = 8192;
  // kYarn: the factor of cosines and sines, and whether its bounds are whole pairs.
  double attention = 1;
  bool whole_pairs = true;

  bool operator==(const RotaryConfig&) const = default;
};

// Angle in radians that each pair turns per position, [elements / 2]. Every step is in fp32, as in Hugging Face's
// transformers, with the same bits but for its powers. A position's angle is the fp32 product of it and the frequency.
std::vector<float> rotary_frequencies(const RotaryConfig& rotary);

// [positions, 2, elements / 2]: a position's cosines, then its sines.
std::vector<float> rotary_table(const RotaryConfig& rotary, std::int64_t positions);

}  // namespace teratron

// Scores of vectors of pairs of texts.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/examples.h"

namespace teratron::embed {

// Vectors of the texts of each example, [examples][texts * hidden], one after another.
using Vectors = std::vector<std::vector<float>>;

// Cosine of the first two texts of each example, as fp32 has it, which predictions are; 0 where a vector is zero.
std::vector<double> cosines(const Vectors& vectors, std::int64_t texts);

// Examples whose candidates are searched together, one after another in their files: what a search takes grows with the
// examples alone.
inline constexpr std::int64_t kSearchedTogether = 1000;

struct Retrieval {
  double accuracy = 0;         // share of examples whose second text is the nearest of all candidates
  double reciprocal_rank = 0;  // mean over the examples of 1 / the rank of that text
};
// By their cosines to an example's first text, candidates are the second texts, and third ones, of kSearchedTogether
// examples. One of the same tokens as its second text does not count. InternalError: no example.
Retrieval retrieval(const Vectors& vectors, const TaskExamples& examples);

}  // namespace teratron::embed

// Scores of vectors of pairs of texts.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/examples.h"

namespace teratron::embed {

// Vectors of the texts of each example, [examples][texts * hidden], one after another.
using Vectors = std::vector<std::vector<float>>;

// Cosine of the first two texts of each example, rounded to fp32 as predictions are; 0 where a vector is zero.
std::vector<double> cosines(const Vectors& vectors, std::int64_t texts);

// Number of consecutive examples whose candidates are searched together: the time of a search is linear in the
// examples.
inline constexpr std::int64_t kSearchedTogether = 1000;

struct Retrieval {
  double accuracy = 0;         // share of examples whose second text is the nearest of all candidates
  double reciprocal_rank = 0;  // mean over the examples of 1 / the rank of that text
};
// Ranks the candidates of each example, the second and third texts of its kSearchedTogether examples, by their cosines
// to its first text. A candidate with the tokens of its own second text does not count. InternalError: no example.
Retrieval retrieval(const Vectors& vectors, const TaskExamples& examples);

}  // namespace teratron::embed

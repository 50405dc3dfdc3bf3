// Parameters that a tensor-parallel rank holds of the parts of a model, counted from their declarations.
#pragma once

#include <cstdint>

#include "model/config.h"

namespace teratron::plan {

struct RankParameters {
  double layer = 0;                // of one layer
  double embedding = 0, head = 0;  // of the first and of the last stage alone
  double tied = 0;                 // that both hold
  double shared = 0;               // of every stage, where they share the vocabulary out
};

// `stages`: those that share the vocabulary out (PipelineSettings::vocabulary_stages). `trained`: without frozen ones.
RankParameters rank_parameters(const ModelConfig& model, std::int64_t tensor, std::int64_t stages = 1,
                               bool trained = false);

}  // namespace teratron::plan

// Makes the model that a configuration describes, for callers that work with any kind.
#pragma once

#include <memory>
#include <vector>

#include "executor/model.h"
#include "model/config.h"

namespace teratron {

// This tensor-parallel rank's part of the model. `stages`: those of a pipeline that share the vocabulary out, of a
// model that continues text (pipeline/vocabulary_passes.h). UserError lists the faults of the configuration.
std::unique_ptr<Model> make_model(const ModelConfig& config, GroupRank group = {}, GroupRank stages = {});

// All of the whole model's parameters, in the order of Model::visit, without memory.
std::vector<Parameter> declared_parameters(const ModelConfig& config);

}  // namespace teratron

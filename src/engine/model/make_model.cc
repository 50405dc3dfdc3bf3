#include "model/make_model.h"

#include "model/family.h"

namespace teratron {

std::unique_ptr<Model> make_model(const ModelConfig& config, GroupRank group, GroupRank stages) {
  return config.family().make(config, group, stages);
}

std::vector<Parameter> declared_parameters(const ModelConfig& config) {
  std::vector<Parameter> parameters;
  make_model(config)->visit([&](Parameter& parameter) { parameters.push_back(parameter); });
  return parameters;
}

}  // namespace teratron

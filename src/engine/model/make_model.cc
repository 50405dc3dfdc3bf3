#include "model/make_model.h"

#include "base/error.h"
#include "model/bert.h"
#include "model/gpt2.h"

namespace teratron {

std::unique_ptr<Model> make_model(const ModelConfig& config, GroupRank group) {
  switch (config.kind) {
    case ModelKind::kGpt2: return std::make_unique<Gpt2>(config, group);
    case ModelKind::kBert: return std::make_unique<Bert>(config, group);
  }
  throw InternalError("a model of an unknown kind");
}

std::vector<Parameter> declared_parameters(const ModelConfig& config) {
  std::vector<Parameter> parameters;
  make_model(config)->visit([&](Parameter& parameter) { parameters.push_back(parameter); });
  return parameters;
}

}  // namespace teratron

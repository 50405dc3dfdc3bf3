#include "model/adapters.h"

#include <fmt/ranges.h>

#include "base/error.h"
#include "model/family.h"

namespace teratron {
namespace {

constexpr std::int64_t kMostRank = 4096;

}  // namespace

unsigned adapter_targets(const ModelConfig& model, std::span<const std::string> names) {
  const std::span<const AdapterTarget> all = model.family().adapter_targets;
  if (all.empty()) throw_user_error("a {} takes no adapters; models that continue text do", model.family().title);
  unsigned targets = 0;
  for (const std::string& name : names) {
    bool is_known = false;
    for (const AdapterTarget& target : all) {
      if (name != kAllLinear && name != target.name) continue;
      is_known = true;
      targets |= target.targets;
    }
    if (is_known) continue;
    std::vector<std::string_view> known;
    for (const AdapterTarget& target : all) known.push_back(target.name);
    throw_user_error("a {} has no layer '{}' for an adapter; it has {}, or {} for all", model.family().title, name,
                     fmt::join(known, ", "), kAllLinear);
  }
  return targets;
}

std::vector<std::string> adapter_target_names(const ModelConfig& model) {
  std::vector<std::string> names;
  for (const AdapterTarget& target : model.family().adapter_targets) {
    if ((model.adapters.targets & target.targets) == target.targets) names.emplace_back(target.name);
  }
  return names;
}

std::vector<PlacedAdapter> placed_adapters(const ModelConfig& model) {
  std::vector<PlacedAdapter> placed;
  const std::vector<TransformerLayer> layers = model.make_layers({});
  const auto place = [&](const Linear& linear) {
    for (const Adapter& adapter : linear.adapters) {
      placed.push_back({.weight = linear.weight,
                        .a = adapter.a,
                        .b = adapter.b,
                        .part = adapter.first_output / adapter.outputs(),
                        .parts = linear.outputs() / adapter.outputs()});
    }
  };
  for (const TransformerLayer& layer : layers) {
    Attention::for_each_linear(layer.attention, place);
    Mlp::for_each_linear(layer.mlp, place);
  }
  return placed;
}

void add_adapter_faults(const ModelConfig& model, Faults& faults) {
  const AdapterConfig& adapters = model.adapters;
  faults.need_between({"lora-rank"}, adapters.rank, 0, kMostRank);
  if (!adapters.active()) return;
  faults.add_if(model.family().adapter_targets.empty(), "{} is for models that continue text, and a {} does not",
                Flag{"lora-rank"}, model.family().title);
  faults.add_if(adapters.targets == 0 && !model.family().adapter_targets.empty(), "{} names no layer",
                Flag{"lora-targets"});
  need_positive(faults, {"lora-alpha"}, adapters.alpha);
  faults.add_if(!(adapters.dropout >= 0 && adapters.dropout < 0.999), "{} is {}; it must be at least 0 and below 0.999",
                Flag{"lora-dropout"}, adapters.dropout);
}

}  // namespace teratron

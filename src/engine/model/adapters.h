// Adapters of a model by the names of their targets, which are PEFT's and a family's own (Family::adapter_targets).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/faults.h"
#include "nn/adapter.h"
#include "nn/parameter.h"

namespace teratron {

struct ModelConfig;

struct AdapterTarget {
  std::string_view name;
  unsigned targets;  // AdapterConfig::Target
};

inline constexpr std::string_view kAllLinear = "all-linear";  // every target of the family

// AdapterConfig::targets of names. UserError: the family has no such target, or no adapters.
unsigned adapter_targets(const ModelConfig& model, std::span<const std::string> names);
// The reverse, in the family's order.
std::vector<std::string> adapter_target_names(const ModelConfig& model);

// An adapter of the whole model beside its weight, of whose rows it has the `part`th of so many equal parts.
struct PlacedAdapter {
  Parameter weight, a, b;  // without memory
  std::int64_t part = 0, parts = 1;
};
std::vector<PlacedAdapter> placed_adapters(const ModelConfig& model);

// Faults of model.adapters.
void add_adapter_faults(const ModelConfig& model, Faults& faults);

}  // namespace teratron

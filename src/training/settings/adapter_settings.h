// Settings of low-rank adapters (model/adapters.h).
#pragma once

#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/faults.h"
#include "model/config.h"
#include "options/fields.h"

namespace teratron {

// Adds the fields under their own heading. `frozen`: the tiles that hold the weights beside adapters
// (ExecutorOptions::weight_tiles).
void add_adapter_fields(FieldList& list, AdapterConfig& adapters, std::string& targets, std::optional<DType>& frozen);

// Sets the targets of a model's adapters, if it has some, from names with commas between; no names: those that are set,
// or those of queries and values. UserError: a name that its family does not have.
void set_adapter_targets(ModelConfig& model, const std::string& names);

// Faults of tiles for frozen weights.
Faults frozen_weights_faults(const AdapterConfig& adapters, std::optional<DType> frozen);

// Faults that ModelConfig::faults() cannot find. Sets the targets of adapters, as set_adapter_targets() does.
Faults adapter_faults(ModelConfig& model, const std::string& names);

}  // namespace teratron

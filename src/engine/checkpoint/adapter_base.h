// The model that adapters were trained beside. A checkpoint of adapters holds them alone, and names it.
#pragma once

#include <filesystem>
#include <span>

#include "checkpoint/native/checkpoint.h"

namespace teratron {

// Returns the base that adapters beside the model in `path` have: that model, or its own base where it holds adapters
// itself. Reads tensors that have no recorded checksums.
// UserError as find_weights, and where the name of the base's folder is not UTF-8, as a checkpoint's JSON must be.
AdapterBase adapter_base_of(const std::filesystem::path& path);

// UserError: the base of the adapters in `folder` is not there, or is another model by now.
void require_base(const std::filesystem::path& folder, const AdapterBase& base);

// Loads the frozen weights of the model that the adapters in `folder` are beside. `verify`: they are those of the
// training; one rank is enough. Does nothing where `config` has no adapters.
void load_base(const std::filesystem::path& folder, const AdapterBase& base, const ModelConfig& config,
               std::span<Parameter* const> parameters, Backend& backend, bool verify);

}  // namespace teratron

// The model that adapters were trained beside. A checkpoint of adapters holds them alone, and names it.
#pragma once

#include <filesystem>
#include <span>

#include "checkpoint/native/checkpoint.h"

namespace teratron {

// Returns the base of new adapters for the model in `path`: that model or, if it holds adapters, its base. Reads
// tensors that have no recorded checksums. UserError as find_weights, and where the name of the base's folder is not
// UTF-8, as a checkpoint's JSON must be.
AdapterBase adapter_base_of(const std::filesystem::path& path);

// Throws a UserError where the base of the adapters in `folder` is missing or has changed.
void require_base(const std::filesystem::path& folder, const AdapterBase& base);

// Loads the frozen weights beside the adapters in `folder`. `verify`: compares them with the recorded checksum; one
// rank is enough. Does nothing where `config` has no adapters.
void load_base(const std::filesystem::path& folder, const AdapterBase& base, const ModelConfig& config,
               std::span<Parameter* const> parameters, Backend& backend, bool verify);

}  // namespace teratron

// The back end that the flags name, one for each rank.
#pragma once

#include <memory>

#include "cli/ranks.h"
#include "ops/backend.h"
#include "train/backend_settings.h"

namespace teratron {

// Ranks of one host take its GPUs in turn. Every rank of the world calls it. EnvironmentError: no such device.
std::unique_ptr<Backend> make_backend(const BackendSettings& settings, const Rank& rank);

}  // namespace teratron

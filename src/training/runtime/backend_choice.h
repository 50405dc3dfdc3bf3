// Back end of a rank, by the flags.
#pragma once

#include <memory>

#include "ops/backend.h"
#include "runtime/ranks.h"
#include "settings/backend_settings.h"

namespace teratron {

// Makes the back end. Ranks of one host take its GPUs in turn. Every rank of the world calls it. EnvironmentError: no
// such device.
std::unique_ptr<Backend> make_backend(const BackendSettings& settings, const Rank& rank);

}  // namespace teratron

// What a measurement is valid for.
#pragma once

#include <string>

#include "ops/backend.h"

namespace teratron {

// Of the device that the back end computes on, as its maker calls it; of the host's processor, with its cores, where it
// has none.
std::string processor_name(const Backend& backend);

}  // namespace teratron

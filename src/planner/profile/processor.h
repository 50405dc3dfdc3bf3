// Names of processors.
#pragma once

#include <string>

#include "ops/backend.h"

namespace teratron {

// Name of the first core's processor in the text of /proc/cpuinfo. Names in virtual machines are vague, so the name
// also has the family and model on x86, and the implementer and part on Arm.
std::string processor_in(const std::string& cpuinfo);

// The device's name, else the host's processor and how many cores it has.
std::string processor_name(const Backend& backend);

}  // namespace teratron

// Names of processors.
#pragma once

#include <string>

#include "ops/backend.h"

namespace teratron {

// The processor of the first core in the text of /proc/cpuinfo, as the system names it. Virtual machines say little, so
// also which of its kind it is: family and model on x86, implementer and part on Arm.
std::string processor_in(const std::string& cpuinfo);

// The device's name, else the host's processor and how many cores it has.
std::string processor_name(const Backend& backend);

}  // namespace teratron

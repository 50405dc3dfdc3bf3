// Name of the host that this process runs on.
#pragma once

#include <string>

namespace teratron {

std::string host_name();  // "?" where the system does not say

}  // namespace teratron

// Numbers as text for people; counts are in base/counted.h.
#pragma once

#include <cstdint>
#include <string>

#include "base/counted.h"

namespace teratron {

std::string readable_bytes(std::uint64_t bytes);  // "512 B", "1.50 MiB", "17.2 GiB"
std::string readable_count(double count);         // "12", "1.23 k", "124 M", "8.30 G"
std::string readable_duration(double seconds);    // "85 ms", "12.3 s", "3 min 05 s", "2 h 07 min", "3 d 04 h"

}  // namespace teratron

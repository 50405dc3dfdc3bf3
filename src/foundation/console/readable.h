// Numbers as text for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teratron {

std::string readable_bytes(std::uint64_t bytes);     // "512 B", "1.50 MiB", "17.2 GiB"
std::string readable_count(double count);            // "12", "1.23 k", "124 M", "8.30 G"
std::string readable_duration(double seconds);       // "85 ms", "12.3 s", "3 min 05 s", "2 h 07 min", "3 d 04 h"
std::string readable_integer(std::int64_t integer);  // "-1,234,567"

// Count with its noun: "1 document", "2,345 documents". `many`: an irregular plural, "2 corpora".
std::string counted(std::int64_t count, std::string_view one, std::string_view many = {});

}  // namespace teratron

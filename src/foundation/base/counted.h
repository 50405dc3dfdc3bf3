// Counts as text for messages: digits in groups of three, and the noun.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace teratron {

std::string readable_integer(std::int64_t integer);  // "-1,234,567"

// Count with its noun: "1 document", "2,345 documents". `many`: an irregular plural, "2 corpora".
std::string counted(std::int64_t count, std::string_view one, std::string_view many = {});

}  // namespace teratron

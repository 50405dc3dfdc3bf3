// JSON numbers that Python's json module writes and reads, and that parsers of 64-bit numbers refuse.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// The same text, in which a whole number beyond 64 bits is a floating-point one, a number beyond double's range is 0 or
// double's largest, and NaN and Infinity are null. transformers, for one, writes 1000000000000000019884624838656 where
// a tokenizer has no longest text. Text that is no JSON stays none.
std::string fit_json_numbers(std::string_view json);

}  // namespace teratron

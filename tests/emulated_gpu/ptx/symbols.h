#pragma once

#include <string>

namespace teratron::emulated::ptx {

// Mangled name of a function of this program, which must have its symbols; empty if there is none.
std::string symbol_at(const void* function);

}  // namespace teratron::emulated::ptx

# Writes OUTPUT, a header with a name for the interface between the program and the CUDA module: the version and a hash
# of every header (HEADERS) that says how data passes between them. Both must be compiled with the same ones.
set(texts "")
foreach(header ${HEADERS})
  file(SHA256 ${header} hash)
  string(APPEND texts ${hash})
endforeach()
string(SHA256 hash "${texts}")
string(SUBSTRING ${hash} 0 12 hash)
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
#pragma once

#include <string_view>

namespace teratron {

constexpr std::string_view kCudaInterface = "@VERSION@-@hash@";

}  // namespace teratron
]] @ONLY)

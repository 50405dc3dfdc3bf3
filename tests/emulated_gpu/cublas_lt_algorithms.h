// Settings of the emulated cuBLASLt's algorithms.
#pragma once

#include "cublasLt.h"

namespace teratron::emulated {

// Places in cublasLtMatmulAlgo_t::data.
enum Place : std::uint8_t { kNumber, kScheme, kParts, kTile, kStages };

// In which an algorithm adds up its parts, unless it is configured.
std::uint32_t scheme_of(std::uint64_t algorithm);

// Whether the splitting algorithm can be configured so: with one of its tiles and stages, and sums in a scheme that it
// has. Others are as they are.
bool is_configured(const cublasLtMatmulAlgo_t& algorithm);

}  // namespace teratron::emulated

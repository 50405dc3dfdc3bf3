// Matrices in NumPy's file format, version 1.0 (numpy.lib.format).
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace teratron {

// Writes `values` [rows, columns] as little-endian float32, row by row. "-" is standard output. EnvironmentError as
// AtomicFile's.
void write_npy(const std::filesystem::path& path, std::int64_t columns, std::span<const float> values);

}  // namespace teratron

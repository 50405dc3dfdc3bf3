// Progress of reading or writing a checkpoint, measured by its checksums.
#pragma once

#include <cstdint>
#include <filesystem>

#include "console/long_task.h"

namespace teratron {

// Bytes that Checksums take from now on, as a share of `bytes`.
LongTask::Share share_of_checksums(std::uint64_t bytes);

// Bytes of all files below a folder.
std::uint64_t bytes_of_folder(const std::filesystem::path& folder);

}  // namespace teratron

// How far the reading or writing of a checkpoint is, measured by the checksums that go with it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "console/long_task.h"

namespace teratron {

// What Checksums take in from now on, as a share of `bytes`.
LongTask::Share share_of_checksums(std::uint64_t bytes);

// Of all files below it.
std::uint64_t bytes_of_folder(const std::filesystem::path& folder);

}  // namespace teratron

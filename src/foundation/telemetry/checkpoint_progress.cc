#include "telemetry/checkpoint_progress.h"

#include <algorithm>

#include "base/files/checksum.h"

namespace teratron {

LongTask::Share share_of_checksums(std::uint64_t bytes) {
  return [bytes, before = checksummed_bytes()] {
    return static_cast<double>(checksummed_bytes() - before) / static_cast<double>(std::max<std::uint64_t>(1, bytes));
  };
}

std::uint64_t bytes_of_folder(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           folder, std::filesystem::directory_options::skip_permission_denied, error)) {
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  }
  return bytes;
}

}  // namespace teratron

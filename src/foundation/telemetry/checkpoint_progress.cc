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
  namespace fs = std::filesystem;
  std::uint64_t bytes = 0;
  std::error_code ends, error;
  for (fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied, ends), end;
       !ends && entry != end; entry.increment(ends)) {
    if (!entry->is_regular_file(error)) continue;
    const std::uint64_t size = entry->file_size(error);
    if (!error) bytes += size;  // else it has gone
  }
  return bytes;
}

}  // namespace teratron

#include "base/files/free_place.h"

#include <set>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {

namespace fs = std::filesystem;

void require_free(std::span<const fs::path> files, bool overwrite) {
  for (const fs::path& file : files) {
    std::error_code missing;
    if (overwrite || file.empty() || is_standard_stream(file)) continue;
    if (!fs::is_regular_file(file, missing)) continue;
    throw_user_error(
        "'{}' is there already, and nothing is overwritten unasked; name another place, or add --overwrite",
        file.string());
  }
}

void require_separate(std::span<const fs::path> read, std::span<const fs::path> written) {
  std::set<fs::path> taken;
  std::error_code missing;
  for (const fs::path& file : read) {
    const fs::path real = fs::weakly_canonical(is_standard_stream(file) ? "/proc/self/fd/0" : file, missing);
    if (!missing) taken.insert(real);
  }
  for (const fs::path& file : written) {
    if (file.empty() || is_standard_stream(file)) continue;
    const fs::path target = AtomicFile::target_of(file);
    if (target.empty()) continue;
    const fs::path real = fs::weakly_canonical(target, missing);
    if (missing || taken.insert(real).second) continue;
    throw_user_error("'{}' is read or written by this command already; choose another name for the result",
                     file.string());
  }
}

}  // namespace teratron

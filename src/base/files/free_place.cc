#include "base/files/free_place.h"

#include <system_error>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {

void require_free(std::span<const std::filesystem::path> files, bool overwrite) {
  for (const std::filesystem::path& file : files) {
    std::error_code missing;
    if (overwrite || file.empty() || is_standard_stream(file)) continue;
    if (!std::filesystem::is_regular_file(file, missing)) continue;
    throw_user_error(
        "'{}' is there already, and nothing is overwritten unasked; name another place, or add --overwrite",
        file.string());
  }
}

}  // namespace teratron

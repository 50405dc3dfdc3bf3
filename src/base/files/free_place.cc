#include "base/files/free_place.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {
namespace {

// Of processes on several hosts the others may not see the folder that the first one writes to.
bool is_later_process_of_a_job() {
  const std::array variables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"};
  for (const char* const variable : variables) {
    if (const char* const rank = std::getenv(variable); rank != nullptr) return std::atoi(rank) > 0;
  }
  return false;
}

}  // namespace

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

void require_writable(const std::filesystem::path& file) {
  if (file.empty() || is_later_process_of_a_job() || AtomicFile::target_of(file).empty()) return;
  std::error_code missing;
  if (std::filesystem::is_directory(file, missing)) throw_write_error(file, EISDIR);
  try {
    const AtomicFile unwritten(file);
  } catch (const NoSpaceError&) {
    // What is written in the end may find room.
  }
}

void require_replaceable(const std::filesystem::path& file, std::string_view kind, std::string_view beginning) {
  std::error_code missing;
  if (file.empty() || is_standard_stream(file) || is_later_process_of_a_job()) return;
  if (std::filesystem::is_regular_file(file, missing) && std::filesystem::file_size(file, missing) > 0) {
    std::string there(beginning.size(), '\0');
    std::ifstream(file, std::ios::binary).read(there.data(), static_cast<std::streamsize>(there.size()));
    if (there != beginning) {
      throw_user_error("'{}' is there already and is no {}; name another place, or move it away", file.string(), kind);
    }
  }
  require_writable(file);
}

}  // namespace teratron

#include "base/files/free_place.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "base/error.h"
#include "base/files/file.h"

namespace teratron {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void throw_misplaced(const fs::path& file, std::string_view why) {
  throw_user_error("cannot write '{}': {}", file.string(), why);
}

// The first process writes. Processes on other hosts may not see its folder.
bool is_later_process_of_a_job() {
  const std::array variables = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID", "RANK"};
  for (const char* const variable : variables) {
    if (const char* const rank = std::getenv(variable); rank != nullptr) return std::atoi(rank) > 0;
  }
  return false;
}

}  // namespace

void require_free(std::span<const fs::path> files, bool overwrite) {
  for (const fs::path& file : files) {
    std::error_code missing;
    if (overwrite || file.empty() || is_standard_stream(file)) continue;
    if (!fs::is_regular_file(file, missing)) continue;
    throw_user_error(
        "'{}' is there already, and nothing is overwritten unasked; choose another name, or add --overwrite",
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

void require_place(const fs::path& file) {
  if (file.empty() || is_later_process_of_a_job()) return;
  const fs::path target = AtomicFile::target_of(file);
  if (target.empty()) return;
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code error;
  const fs::file_status there = fs::status(folder, error);
  if (error == std::errc::too_many_symbolic_link_levels) throw_link_loop(file);
  if (error == std::errc::not_a_directory || (fs::exists(there) && !fs::is_directory(there))) {
    throw_misplaced(
        file, fmt::format("there is a file at the place of its folder '{}', or of one above it; choose another place",
                          folder.string()));
  }
}

void require_writable(const fs::path& file) {
  if (file.empty() || is_later_process_of_a_job()) return;
  require_place(file);
  const fs::path target = AtomicFile::target_of(file);
  if (target.empty()) return;
  std::error_code missing;
  if (target.has_parent_path() && !fs::exists(target.parent_path(), missing)) {
    throw_misplaced(file, fmt::format("there is no folder '{}'; make it first, or choose another place",
                                      target.parent_path().string()));
  }
  if (fs::is_directory(target, missing)) throw_misplaced(file, "a folder has that name; choose another name");
  try {
    // A partial file that is there may be another command's, which goes on with it later.
    const fs::path partial = AtomicFile::partial_of(file);
    if (fs::is_regular_file(partial, missing)) {
      ::close(open_for_writing(partial, 0));
    } else {
      const AtomicFile unwritten(file);
    }
  } catch (const NoSpaceError&) {
    // There may be space by the time of the result.
  }
}

void require_replaceable(const fs::path& file, std::string_view kind, std::string_view beginning) {
  std::error_code missing;
  if (file.empty() || is_standard_stream(file) || is_later_process_of_a_job()) return;
  if (fs::is_regular_file(file, missing) && fs::file_size(file, missing) > 0) {
    std::string there(beginning.size(), '\0');
    std::ifstream(file, std::ios::binary).read(there.data(), static_cast<std::streamsize>(there.size()));
    if (there != beginning) {
      throw_user_error("'{}' is there already and is no {}; choose another name, or move it away", file.string(), kind);
    }
  }
  require_writable(file);
}

}  // namespace teratron

#include "base/files/cache_folder.h"

#include <cstdlib>

namespace teratron {
namespace {

std::filesystem::path folder_in(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

}  // namespace

std::filesystem::path user_cache_folder() {
  if (const std::filesystem::path cache = folder_in("XDG_CACHE_HOME"); !cache.empty()) return cache / "teratron";
  const std::filesystem::path home = folder_in("HOME");
  return home.empty() ? home : home / ".cache" / "teratron";
}

}  // namespace teratron

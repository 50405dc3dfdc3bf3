// Folder of measurements of this machine, kept between runs.
#pragma once

#include <filesystem>

namespace teratron {

// $XDG_CACHE_HOME/teratron, else ~/.cache/teratron. It need not exist. Empty: neither XDG_CACHE_HOME nor HOME is set.
std::filesystem::path user_cache_folder();

}  // namespace teratron

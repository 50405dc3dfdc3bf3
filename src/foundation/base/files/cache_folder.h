// Where what was measured on this machine is kept between runs.
#pragma once

#include <filesystem>

namespace teratron {

// $XDG_CACHE_HOME, or ~/.cache, /teratron; it need not exist. Empty where neither XDG_CACHE_HOME nor HOME is set.
std::filesystem::path user_cache_folder();

}  // namespace teratron

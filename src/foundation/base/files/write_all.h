// Small files that are written in place.
#pragma once

#include <string_view>

namespace teratron {

// Replaces an open file's content, and brings it to the disk. Returns errno; 0: done.
int write_all(int descriptor, std::string_view content);

}  // namespace teratron

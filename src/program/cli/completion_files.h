// The files in completion/, which CMake puts into the program.
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace teratron {

std::span<const EmbeddedFile> completion_files();

}  // namespace teratron

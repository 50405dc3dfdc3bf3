// Style sheets, scripts and HTML of pages: the files of files/.
#pragma once

#include <span>

#include "base/embedded_file.h"

namespace teratron {

std::span<const EmbeddedFile> page_files();

}  // namespace teratron

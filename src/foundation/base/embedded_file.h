// Files that CMake puts into the program as texts (teratron_embed in src/CMakeLists.txt).
#pragma once

#include <span>
#include <string_view>

#include "base/error.h"

namespace teratron {

struct EmbeddedFile {
  std::string_view name, text;  // name: without its extension
};

inline std::string_view text_of(std::span<const EmbeddedFile> files, std::string_view name) {
  for (const EmbeddedFile& file : files) {
    if (file.name == name) return file.text;
  }
  throw InternalError(fmt::format("the program has no file '{}'", name));
}

}  // namespace teratron

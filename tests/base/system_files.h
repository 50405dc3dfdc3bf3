// A file system's root with files such as the kernel shows of itself.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/temporary_folder.h"

namespace teratron::testing {

class SystemFiles : public ::testing::Test {
 protected:
  void write(const std::filesystem::path& file, const std::string& text) {
    const std::filesystem::path path = root_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }

  const TemporaryFolder root_;
};

}  // namespace teratron::testing

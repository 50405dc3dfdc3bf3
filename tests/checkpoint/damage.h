// The few file operations that tests of damage need.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

#include "base/message_of.h"
#include "base/temporary_folder.h"

namespace teratron::testing {

inline std::string bytes_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
}

inline void flip_bit(const std::filesystem::path& path, std::size_t byte, int bit) {
  std::string content = bytes_of_file(path);
  content.at(byte) = static_cast<char>(content[byte] ^ (1 << bit));
  put_file(path, content);
}

// Every file under `folder`, by its path from there.
inline std::map<std::string, std::string> all_files(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[std::filesystem::relative(entry.path(), folder).string()] = bytes_of_file(entry.path());
    }
  }
  return files;
}

}  // namespace teratron::testing

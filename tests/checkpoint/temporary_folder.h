// A folder that lives as long as a test, and the few file operations that tests of damage need.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace teratron::testing {

class TemporaryFolder {
 public:
  // In memory where the system has such a place: a disk is slow at being overwritten a thousand times.
  enum Place { kMemory, kDisk };
  explicit TemporaryFolder(Place place = kMemory) {
    const std::filesystem::path memory = "/dev/shm", disk = std::filesystem::temp_directory_path();
    const bool use_memory = place == kMemory && std::filesystem::is_directory(memory);
    std::string name = ((use_memory ? memory : disk) / "teratron_checkpoint_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

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

// What `body` throws as an Error, in words; a failure that says so where it throws nothing.
template <class Error, class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace teratron::testing

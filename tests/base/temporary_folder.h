// A fresh folder for one test, removed with everything in it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace teratron::testing {

class TemporaryFolder {
 public:
  // In memory where the system has such a place: a disk is slow at being written and synced a thousand times.
  enum Place { kMemory, kDisk };
  explicit TemporaryFolder(Place place = kMemory) {
    const std::filesystem::path memory = "/dev/shm", disk = std::filesystem::temp_directory_path();
    const bool use_memory = place == kMemory && std::filesystem::is_directory(memory);
    std::string name = ((use_memory ? memory : disk) / "teratron-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot create " + name);
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
  std::size_t entries() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace teratron::testing

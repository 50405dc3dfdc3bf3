// Which algorithm each matrix product takes on a machine, kept on disk: the choice is made by timing, which another run
// would decide otherwise, and algorithms differ in the order of their sums. With the file the first run decides for all
// that follow, and ranks that share a machine decide once: results repeat bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace teratron {

// As the library serialises one; it can be restored for the same version of the library (cublasLt.h).
using AlgorithmBytes = std::array<std::byte, 64>;

struct Algorithm {
  AlgorithmBytes bytes{};
  double microseconds = 0;  // that it took; 0 where there was no other to time it against
  bool operator==(const Algorithm&) const = default;
};

// By the text of what is multiplied.
using Algorithms = std::map<std::string, Algorithm>;

// The content of a file, in JSON. Reads back exactly; nothing where the text is damaged, of another format or of
// another machine.
std::string text_of(const Algorithms& algorithms, std::string_view machine);
std::optional<Algorithms> algorithms_from_text(std::string_view text, std::string_view machine);

// All members may be called by several threads at a time, and several processes may use one file.
class AlgorithmCache {
 public:
  // Of a machine: device, driver, library. Begins with what the file holds; one that is not there or of no use is
  // written anew. `file` empty: in memory only.
  AlgorithmCache(std::filesystem::path file, std::string machine);

  std::optional<Algorithm> find(const std::string& key) const;

  // Keeps the caller's choice for a product, or finds that another rank was quicker: returns what all use from now on.
  // `unusable` is one that was found and cannot be used; it alone is replaced. Where the file cannot be written, one
  // warning on standard error says so, and the choice holds for this process.
  Algorithm settle(const std::string& key, const Algorithm& own, const std::optional<Algorithm>& unusable = {});

 private:
  Algorithm settle_on_disk(const std::string& key, const Algorithm& own, const std::optional<Algorithm>& unusable);
  void warn(std::string_view reason);

  const std::filesystem::path file_;
  const std::string machine_;
  mutable std::mutex mutex_;
  Algorithms known_;
  bool warned_ = false;
};

// The one of this process for a machine, with its file in the user's cache folder.
std::shared_ptr<AlgorithmCache> algorithm_cache_of(const std::string& machine);

}  // namespace teratron

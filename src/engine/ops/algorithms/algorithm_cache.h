// AlgorithmCache: the algorithm of each matrix product on a machine, kept on disk. Algorithms are chosen by timing,
// which varies from run to run, and differ in the order of their sums. With the file the first run decides for all
// later ones, and ranks that share a machine decide once, so results repeat bit for bit.
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

// Algorithm as the library serialises it; only the same version of the library can restore it (cublasLt.h).
using AlgorithmBytes = std::array<std::byte, 64>;

struct Algorithm {
  AlgorithmBytes bytes{};
  double microseconds = 0;  // that it took; 0 where there was no other to time it against
  bool operator==(const Algorithm&) const = default;
};

// Algorithms by the text of the product.
using Algorithms = std::map<std::string, Algorithm>;

// The content of a file, in JSON, and its algorithms, exactly; nothing if the text is damaged, of another format or of
// another machine.
std::string text_of(const Algorithms& algorithms, std::string_view machine);
std::optional<Algorithms> algorithms_from_text(std::string_view text, std::string_view machine);

// All members may be called by several threads at a time, and several processes may use one file.
class AlgorithmCache {
 public:
  // Reads `file`; one that is missing or unusable is replaced. An empty `file` keeps choices in memory only. `machine`
  // names device, driver and library.
  AlgorithmCache(std::filesystem::path file, std::string machine);

  std::optional<Algorithm> find(const std::string& key) const;

  // Keeps the caller's choice for a product, unless another rank was quicker; returns the one that all use. `unusable`
  // was found and cannot be used; it alone is replaced. Where the file cannot be written, one warning on standard error
  // says so, and the choice holds for this process.
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

// This process's cache for a machine, with its file in the user's cache folder.
std::shared_ptr<AlgorithmCache> algorithm_cache_of(const std::string& machine);

}  // namespace teratron

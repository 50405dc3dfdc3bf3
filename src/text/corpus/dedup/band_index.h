// Finds documents that share a band: pairs of (hash of a band, document), sorted on disk, in constant memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace teratron {

class BandIndex {
 public:
  struct Entry {
    std::uint64_t hash;
    std::int64_t document;
    auto operator<=>(const Entry&) const = default;
  };
  static constexpr std::int64_t kParts = 256;

  // Temporary files without names in `folder`. Memory: 4 MiB while writing. EnvironmentError: as Spool.
  explicit BandIndex(const std::filesystem::path& folder);
  BandIndex(const BandIndex&) = delete;
  BandIndex& operator=(const BandIndex&) = delete;
  ~BandIndex();

  void add(std::uint64_t hash, std::int64_t document);
  void end_writing();

  // Calls `meeting` with the documents of each hash that several have, ascending. Reads part `part` of the entries;
  // memory: 16 bytes for each of them.
  void for_each_meeting(std::int64_t part, const std::function<void(std::span<const Entry>)>& meeting) const;

 private:
  struct Part {
    int descriptor = -1;
    std::int64_t entries = 0;
    std::vector<Entry> buffer;
  };
  void flush(Part& part);

  std::filesystem::path folder_;
  std::vector<Part> parts_;
};

}  // namespace teratron

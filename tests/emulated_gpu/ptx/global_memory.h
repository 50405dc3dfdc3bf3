// Which addresses a kernel may touch: those of the device's allocations, byte by byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace teratron::emulated::ptx {

struct Allocation {
  std::uint64_t begin = 0, end = 0;
};

class GlobalMemory {
 public:
  // In any order.
  explicit GlobalMemory(std::vector<Allocation> allocations) : allocations_(std::move(allocations)) {
    std::sort(allocations_.begin(), allocations_.end(),
              [](const Allocation& a, const Allocation& b) { return a.begin < b.begin; });
  }

  bool holds(std::uint64_t address, std::size_t bytes) {
    if (address >= last_.begin && address + bytes <= last_.end) return true;
    const auto after = std::upper_bound(allocations_.begin(), allocations_.end(), address,
                                        [](std::uint64_t at, const Allocation& a) { return at < a.begin; });
    if (after == allocations_.begin() || address + bytes > std::prev(after)->end) return false;
    last_ = *std::prev(after);
    return true;
  }

 private:
  std::vector<Allocation> allocations_;
  Allocation last_;
};

}  // namespace teratron::emulated::ptx

// Large memory in huge pages, where the system has them.
#pragma once

#include <cstddef>
#include <span>

namespace teratron {

class HugePages {
 public:
  // `now`: its pages are taken at once, instead of as they are first used. EnvironmentError where the system refuses.
  HugePages(std::size_t bytes, bool now);
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;
  ~HugePages();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace teratron

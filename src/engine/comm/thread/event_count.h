// EventCount: how ranks that are threads wait for a condition. A waiting thread polls it a few times, for answers that
// are microseconds away, and then sleeps until it is notified, since there may be more ranks than cores.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace teratron {

class EventCount {
 public:
  explicit EventCount(int looks) : looks_(looks) {}

  // Returns once ready() holds. A thread that makes it hold stores to an atomic and then calls notify_all().
  template <class Ready>
  void wait_until(const Ready& ready) {
    for (int look = 0; look < looks_; ++look) {
      if (ready()) return;
#if defined(__x86_64__)
      _mm_pause();
#elif defined(__aarch64__)
      asm volatile("isb");  // a short wait; YIELD is none on most cores
#endif
    }
    while (true) {
      const std::uint32_t seen = count_.load();
      if (ready()) return;
      count_.wait(seen);
    }
  }

  void notify_all() {
    count_.fetch_add(1);
    count_.notify_all();
  }

 private:
  const int looks_;
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace teratron

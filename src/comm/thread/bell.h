// Bell: how ranks that are threads wait for each other. They look a few times, for an answer that is microseconds away,
// and then sleep until someone rings, since there may be more ranks than cores.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace teratron {

class Bell {
 public:
  explicit Bell(int looks) : looks_(looks) {}

  // Returns once ready() holds. Whoever makes it hold does so through an atomic, and then rings.
  template <class Ready>
  void wait_until(const Ready& ready) {
    for (int look = 0; look < looks_; ++look) {
      if (ready()) return;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
    while (true) {
      const std::uint32_t heard = rings_.load();
      if (ready()) return;
      rings_.wait(heard);
    }
  }

  void ring() {
    rings_.fetch_add(1);
    rings_.notify_all();
  }

 private:
  const int looks_;
  std::atomic<std::uint32_t> rings_{0};
};

}  // namespace teratron

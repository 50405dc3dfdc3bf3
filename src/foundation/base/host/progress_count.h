// Count of a rank's progress: loops, blocks of files, calls to other ranks that have returned. A watch of the rank
// compares two looks at it.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace teratron {

class ProgressCount {
 public:
  void add() { count_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t get() const { return count_.load(std::memory_order_relaxed); }

  static ProgressCount* of_thread() { return of_thread_; }  // nullptr: nobody watches this thread

  // While one exists, the calling thread's progress is added to `count`. A rank's helper takes that of its rank.
  class Use {
   public:
    explicit Use(ProgressCount* count) : before_(std::exchange(of_thread_, count)) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { of_thread_ = before_; }

   private:
    ProgressCount* const before_;
  };

 private:
  static inline thread_local ProgressCount* of_thread_ = nullptr;
  std::atomic<std::uint64_t> count_{0};
};

// Counts a step of the calling thread's work.
inline void note_progress() {
  if (ProgressCount* const count = ProgressCount::of_thread()) count->add();
}

}  // namespace teratron

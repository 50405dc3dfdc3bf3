// Threads of this rank, run by oneTBB. An idle thread sleeps. Where other processes take the cores, the thread that
// starts a loop works alone, so that they cost a share of the time and not all of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>

namespace teratron {

// Threads that a parallel_for of the calling thread uses. Each thread has its own number, at first usual_threads()
// (resources.h).
int thread_count();
void set_thread_count(int threads);  // at least 1

// Whether an error of the standard library or of oneTBB says that the system gives no more threads.
bool is_lack_of_threads(const std::exception& error);

// Calls task(i) for 0 <= i < tasks on the threads of the calling thread; one after another where it has one thread or
// is itself in such a call.
void run_in_parallel(std::int64_t tasks, const std::function<void(std::int64_t)>& task);

// Calls body(begin, end) for consecutive ranges of [0, count), each `grain` long except the last. Threads take ranges
// as they become free, so `body` may not depend on its thread. Results repeat bit for bit if each output element is
// written by one range. Exceptions of `body` are rethrown.
template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  run_in_parallel((count + grain - 1) / grain,
                  [&](std::int64_t i) { body(i * grain, std::min(count, (i + 1) * grain)); });
}

// Decides whether a thread that starts loops uses its helpers. A helper that loses its core in a task delays the whole
// loop for as long as another process keeps the core. Where loops with helpers take longer than they would alone, the
// thread works alone for a while (bench/results/contention.md).
class ContentionGuard {
 public:
  bool has_helpers(double now) const { return now >= alone_until_; }

  // Records a loop of `tasks` that ended at `ended`. The thread itself did `own` of them, the last until `own_end`;
  // alone, it would have gone on at that pace. Helpers hold up no loop of which it did all, or none.
  void note(double began, double own_end, double ended, std::int64_t own, std::int64_t tasks) {
    if (own == 0 || own == tasks) return;
    with_helpers_ += ended - began;
    alone_ += (own_end - began) * static_cast<double>(tasks) / static_cast<double>(own);
    if (with_helpers_ < kWindow) return;
    if (with_helpers_ > alone_) alone_until_ = ended + kRest * with_helpers_;
    with_helpers_ = alone_ = 0;
  }

 private:
  static constexpr double kWindow = 0.02;  // seconds of loops before a decision
  static constexpr double kRest = 10;      // seconds alone per second of loops with helpers that did not help
  double with_helpers_ = 0, alone_ = 0, alone_until_ = 0;
};

}  // namespace teratron

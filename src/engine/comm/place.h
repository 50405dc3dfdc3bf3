// Place of a rank in its work: the action that it is in, and the call that it waits in for others. The rank's thread
// writes it at every action, without locks; a watchdog's thread reads it and makes text of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/host/progress_count.h"

namespace teratron {

// Action of a rank. A number that it lacks is negative.
struct Activity {
  const char* name = "";  // a literal
  std::int64_t iteration = -1, micro_batch = -1, slice = -1, chunk = -1;

  std::string text() const;  // "forward of micro-batch 1, slice 0 of iteration 12"
};

// Call that others let end: a collective with the ranks first, first + stride, .. of the world, or a message.
struct AwaitedCall {
  const char* name = "";                // a literal, "all-reduce of"
  int first = 0, stride = 1, size = 0;  // stride 0: unevenly spaced; size 0: the name says which

  std::string text() const;  // "all-reduce of ranks 0, 2"
};

class Place {
 public:
  // A look while the rank writes may see numbers of two neighbouring actions. Those of a rank that stands are exact.
  struct Look {
    Activity activity;
    AwaitedCall call;
    bool waits = false;
    std::uint64_t progress = 0;

    std::string text() const;  // of the activity and the call
  };

  Place() = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void enter(const Activity& activity);
  Look look() const;

  static Place* of_thread() { return of_thread_; }  // nullptr: nobody watches this thread

  // While one exists, the calling thread is the rank of this place.
  class Use {
   public:
    explicit Use(Place& place) : before_(std::exchange(of_thread_, &place)), count_(&place.progress_) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { of_thread_ = before_; }

   private:
    Place* const before_;
    const ProgressCount::Use count_;
  };

  // While one exists, the rank of `place` waits for others. Its end is progress.
  class Waits {
   public:
    explicit Waits(const AwaitedCall& call, Place* place = of_thread());
    Waits(const Waits&) = delete;
    Waits& operator=(const Waits&) = delete;
    ~Waits();

   private:
    Place* const place_;
    bool waited_ = false;  // already, in a call around this one
  };

 private:
  static inline thread_local Place* of_thread_ = nullptr;
  std::atomic<const char*> name_{""}, call_{""};
  std::atomic<std::int64_t> iteration_{-1}, micro_batch_{-1}, slice_{-1}, chunk_{-1};
  std::atomic<int> first_{0}, stride_{1}, size_{0};
  std::atomic<bool> waits_{false};
  ProgressCount progress_;
};

// Records the activity of the calling thread's rank, for messages about it; nothing where nobody watches.
inline void note_activity(const Activity& activity) {
  if (Place* const place = Place::of_thread()) place->enter(activity);
}

}  // namespace teratron

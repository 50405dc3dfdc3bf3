// Whether a thread that starts parallel loops is better off alone.
#pragma once

namespace teratron {

// Whether helpers help. One that loses its core in the middle of a chunk holds up the whole loop, for as long as others
// keep the core: next to busy processes of higher priority for most of the time. Then the thread that starts the loops
// works alone for a while.
class ContentionGuard {
 public:
  bool has_helpers(double now) const { return now >= alone_until_; }

  // Of a loop: when it began and when all was done; `alone`: the seconds that its own thread would have taken for it,
  // by those for its share.
  void note(double began, double ended, double alone) {
    with_helpers_ += ended - began;
    alone_ += alone;
    if (with_helpers_ < kWindow) return;
    if (with_helpers_ > alone_) alone_until_ = ended + kRest * with_helpers_;
    with_helpers_ = alone_ = 0;
  }

 private:
  static constexpr double kWindow = 0.02;  // seconds of loops that one judgement is made from
  static constexpr double kRest = 10;      // times as long without helpers, where they do not help
  double with_helpers_ = 0, alone_ = 0, alone_until_ = 0;
};

}  // namespace teratron

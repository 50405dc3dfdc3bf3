#include "base/host/threads.h"

#include <gtest/gtest.h>

namespace teratron {
namespace {

// Loops of 1 ms one after another from second 0 on, until those of `total` seconds are done; alone, each would have
// taken `alone` seconds. When the last one ended.
double loops(ContentionGuard& guard, double alone, double total, double from = 0) {
  constexpr double kLoop = 1e-3;
  double now = from;
  while (now < from + total) {
    guard.note(now, now + kLoop, alone);
    now += kLoop;
  }
  return now;
}

TEST(ContentionGuard, KeepsHelpersThatSaveTime) {
  ContentionGuard guard;
  EXPECT_TRUE(guard.has_helpers(0));
  const double end = loops(guard, 1.9e-3, 1);
  EXPECT_TRUE(guard.has_helpers(end));
}

TEST(ContentionGuard, LeavesOutThoseThatHoldLoopsUpAndTriesThemAgain) {
  ContentionGuard guard;
  const double end = loops(guard, 0.2e-3, 0.0205);
  EXPECT_FALSE(guard.has_helpers(end));
  EXPECT_FALSE(guard.has_helpers(end + 0.15));
  EXPECT_TRUE(guard.has_helpers(end + 0.3)) << "ten times as long as they were tried for";
}

// One loop in which a helper lost its core for a moment is no reason, where the others gain more.
TEST(ContentionGuard, WeighsAllLoopsOfAWhileTogether) {
  ContentionGuard guard;
  guard.note(0, 8e-3, 2e-3);
  const double end = loops(guard, 1.9e-3, 0.02, 8e-3);
  EXPECT_TRUE(guard.has_helpers(end));
}

}  // namespace
}  // namespace teratron

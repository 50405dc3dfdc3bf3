#include "base/host/threads.h"

#include <gtest/gtest.h>

namespace teratron::testing {
namespace {

// A loop of two tasks, of which the thread does one; alone, both would have taken `alone` seconds.
void loop(ContentionGuard& guard, double began, double ended, double alone) {
  guard.note(began, began + alone / 2, ended, 1, 2);
}

// Loops of 1 ms one after another from second `from` on, until those of `total` seconds are done. When the last one
// ended.
double loops(ContentionGuard& guard, double alone, double total, double from = 0) {
  constexpr double kLoop = 1e-3;
  double now = from;
  while (now < from + total) {
    loop(guard, now, now + kLoop, alone);
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
  loop(guard, 0, 8e-3, 2e-3);
  const double end = loops(guard, 1.9e-3, 0.02, 8e-3);
  EXPECT_TRUE(guard.has_helpers(end));
}

// A loop of which the thread did everything ends a moment after its last task, which no helper is to blame for.
TEST(ContentionGuard, IsNotMovedByLoopsThatHelpersHadNoPartIn) {
  ContentionGuard guard;
  guard.note(0, 0.5, 0.5 + 1e-6, 8, 8);
  EXPECT_TRUE(guard.has_helpers(0.6));
  guard.note(0.6, 0.6, 1.1, 0, 8);
  EXPECT_TRUE(guard.has_helpers(1.2));
}

}  // namespace
}  // namespace teratron::testing

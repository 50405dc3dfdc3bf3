#include "base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"

namespace teratron {
namespace {

struct Answer {
  int process;
  double value;
};

TEST(ChildProcess, ItsAnswerComesBackAndNothingElse) {
  int here = 1;
  const Answer answer = run_in_child([&] {
    here = 2;
    return Answer{static_cast<int>(::getpid()), 0.1};
  });
  EXPECT_NE(answer.process, static_cast<int>(::getpid()));
  EXPECT_EQ(answer.value, 0.1);
  EXPECT_EQ(here, 1);
}

TEST(ChildProcess, WhatItThrowsAndHowItDiesAreErrorsHere) {
  try {
    run_in_child([]() -> int { throw_user_error("no such thing"); });
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no such thing"));
  }
  try {
    run_in_child([]() -> int {
      ::raise(SIGKILL);
      return 0;
    });
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("signal 9"));
  }
}

}  // namespace
}  // namespace teratron

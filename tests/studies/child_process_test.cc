#include "studies/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"

namespace teratron {
namespace {

using ::testing::HasSubstr;

std::string message_of(const std::function<std::string()>& work) {
  try {
    in_child_process(work);
  } catch (const EnvironmentError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ChildProcess, ItsTextComesBackAndNothingElse) {
  int here = 1;
  const std::string text = in_child_process([&] {
    here = 2;
    return fmt::format("{} {}", ::getpid(), std::string(200000, 'x'));  // more than a pipe holds
  });
  EXPECT_EQ(text.size(), fmt::format("{}", ::getpid()).size() + 200001);
  EXPECT_NE(std::stoi(text), ::getpid());
  EXPECT_EQ(here, 1);
}

TEST(ChildProcess, WhatItThrowsAndHowItDiesAreErrorsHere) {
  EXPECT_EQ(message_of([]() -> std::string { throw_user_error("no such thing"); }), "no such thing");
  EXPECT_THAT(message_of([]() -> std::string {
                ::raise(SIGKILL);
                return "";
              }),
              HasSubstr("signal 9"));
}

}  // namespace
}  // namespace teratron

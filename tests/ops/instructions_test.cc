// Sets of instructions: names, refusals, and that a process keeps to the one that it was asked to use.
#include "ops/cpu_instructions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "hwy/targets.h"
#include "ops/backend.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

// The message of the UserError that asking for `name` throws, or "" where this processor has the set.
std::string refusal_of(std::string_view name) {
  try {
    find_instructions(name);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Instructions, TheFastestSetIsOneThatCanBeAskedFor) {
  const Instructions fastest = find_instructions("");
  EXPECT_FALSE(fastest.is_asked_for);
  const Instructions asked = find_instructions(fastest.name);
  EXPECT_TRUE(asked.is_asked_for);
  EXPECT_EQ(asked.name, fastest.name);
  EXPECT_EQ(asked.bf16_products, fastest.bf16_products);
}

TEST(Instructions, AnUnknownNameIsRefusedWithAllThatThereAre) {
  const std::string refusal = refusal_of("sse5");
  EXPECT_THAT(refusal, HasSubstr("TERATRON_INSTRUCTIONS=sse5"));
  EXPECT_THAT(refusal, HasSubstr(find_instructions("").name));
}

// AVX-512 is refused by builds with sanitizers, which leave it out, and BF16 where the processor lacks it.
TEST(Instructions, ASetThatIsNotHereIsRefusedWithThoseThatAre) {
#if defined(__x86_64__)
  EXPECT_EQ(refusal_of("baseline"), "");
  EXPECT_FALSE(find_instructions("baseline").bf16_products);
  for (const std::string_view name : {"avx2", "avx512", "avx512-bf16"}) {
    const std::string refusal = refusal_of(name);
    if (!refusal.empty()) {
      EXPECT_THAT(refusal, HasSubstr("baseline"));
    }
    if (!__builtin_cpu_supports("avx512f") && name != "avx2") {
      EXPECT_NE(refusal, "") << name;
    }
    if (refusal.empty()) {
      EXPECT_EQ(find_instructions(name).vnni_products, name == "avx512-bf16");
    }
  }
#endif
}

// A child asks for less than this processor has, and says what its kernels' vectors are.
TEST(Instructions, AProcessKeepsToTheSetThatItWasAskedToUse) {
#if defined(__x86_64__)
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a process of its own, in which nothing is chosen yet
  for (const std::string name : {"baseline", "avx2", "avx512"}) {
    if (!refusal_of(name).empty()) continue;
    const auto report = [&] {
      ::setenv("TERATRON_INSTRUCTIONS", name.c_str(), 1);
      const auto backend = make_cpu_backend({.compute_dtype = DType::kBF16});
      const bool has_avx2 = (hwy::SupportedTargets() & HWY_AVX2) != 0,
                 has_avx3 = (hwy::SupportedTargets() & HWY_AVX3) != 0;
      const bool is_right =
          instructions_in_use().name == name && has_avx2 == (name == "avx2") && has_avx3 == (name == "avx512") &&
          backend->settings() == "TERATRON_INSTRUCTIONS=" + name + ", products of bf16 widened to fp32";
      std::_Exit(is_right ? 0 : 1);
    };
    EXPECT_EXIT(report(), ::testing::ExitedWithCode(0), "") << name;
  }
#else
  GTEST_SKIP() << "there is no smaller set of vectors on this kind of processor";
#endif
}

}  // namespace
}  // namespace teratron::testing

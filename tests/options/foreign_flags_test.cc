#include "options/foreign_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

const auto kHasAll = [](const std::string&) { return true; };
const auto kHasNone = [](const std::string&) { return false; };

TEST(ForeignFlags, AreNamedOnceInAProgram) {
  std::set<std::pair<ForeignProgram, std::string_view>> names;
  for (const ForeignFlag& flag : foreign_flags()) {
    EXPECT_TRUE(names.insert({flag.program, flag.name}).second) << flag.name;
    EXPECT_EQ(flag.name.find('_'), std::string_view::npos) << flag.name;
    EXPECT_FALSE(flag.ours.empty() && flag.note.empty()) << flag.name << " says nothing";
    EXPECT_EQ(flag.ours.empty(), our_flags(flag).empty()) << flag.name;
    EXPECT_NE(foreign_flag_hint(flag.name.size() == 1 ? "-" + std::string(flag.name) : "--" + std::string(flag.name),
                                kHasAll),
              "");
  }
}

TEST(ForeignFlags, AreFoundAsTheirUsersTypeThem) {
  for (const char* typed : {"--n-layer", "--n_layer", "n_layer"}) {
    EXPECT_EQ(foreign_flag_hint(typed, kHasAll), "what nanoGPT calls so is --num-layers N here") << typed;
  }
  EXPECT_THAT(foreign_flag_hint("-b", kHasAll), HasSubstr("llm.c"));
  EXPECT_EQ(foreign_flag_hint("--b", kHasAll), "") << "llm.c's letters have one dash";
  EXPECT_EQ(foreign_flag_hint("--", kHasAll), "");
  EXPECT_EQ(foreign_flag_hint("--no-such-flag", kHasAll), "");
  EXPECT_THAT(foreign_flag_hint("--warmup_ratio", kHasAll),
              HasSubstr("--lr-warmup-iters N here (updates, not a share"));
  EXPECT_THAT(foreign_flag_hint("--num-experts", kHasAll), HasSubstr("no mixture of experts"))
      << "and not --num-layers";
}

TEST(ForeignFlags, AreNotNamedToCommandsWithoutTheirEqual) {
  EXPECT_EQ(foreign_flag_hint("--n_layer", kHasNone), "");
  EXPECT_THAT(foreign_flag_hint("--compile", kHasNone), HasSubstr("leave it out")) << "it has no equal anywhere";
  const auto has_threads = [](const std::string& name) { return name == "threads"; };
  EXPECT_THAT(foreign_flag_hint("--num_workers", has_threads), HasSubstr("--threads N"));
  EXPECT_THAT(foreign_flag_hint("--num-workers", kHasAll), HasSubstr("leave it out")) << "of training";
  const auto has_one = [](const std::string& name) { return name == "hidden-dropout"; };
  EXPECT_EQ(foreign_flag_hint("--dropout", has_one), "") << "it is two flags here";
}

}  // namespace
}  // namespace teratron::testing

// The measuring commands, at a size that takes a moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "cli/binary.h"

namespace teratron {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::run_teratron;

const testing::Words kTinyScaling = {
    "bench",           "scaling", "--layers-divisor",   "72", "--head-size-divisor", "12",
    "--vocab-divisor", "100",     "--batch-size",       "2",  "--updates",           "1",
    "--rounds",        "1",       "--sequence-divisor", "64", "--max-tensor-ranks",  "2"};

TEST(BenchScaling, ShowsEveryStudyNextToThePaperAndKeepsWhatItMeasured) {
  const testing::TemporaryFolder folder;
  const Outcome outcome = run_teratron(testing::with(kTinyScaling, {"--out", folder.path().string()}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("weak"), HasSubstr("heads"), HasSubstr("strong"), HasSubstr("0.95"),
                                    HasSubstr("1.64"), HasSubstr("planned MB"), HasSubstr("measured MB")));
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("0 of 8 steps\n"), HasSubstr("1 of 8 steps, about "), HasSubstr("8 of 8 steps\n")));
  EXPECT_THAT(read_file(folder.path() / "scaling.svg"), HasSubstr("2.5B on 2 GPUs"));
  const auto rows = nlohmann::json::parse(read_file(folder.path() / "scaling.json"));
  EXPECT_EQ(rows.size(), 8U);  // 2 + 2 of Table 1, 2 of Table 7 (24 heads do not divide that model), 2 of Table 8
  EXPECT_EQ(rows[0].at("efficiency").get<double>(), 1.0);
}

TEST(BenchScaling, SizesThatMakeNoSenseAreListedTogether) {
  const Outcome outcome = run_teratron({"bench", "scaling", "--updates", "0", "--max-tensor-ranks", "9"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("--updates is 0"), HasSubstr("--max-tensor-ranks is 9")));
}

}  // namespace
}  // namespace teratron

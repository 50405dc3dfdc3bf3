// Rows that the papers at hand do not have, but may get: small papers whose values follow from one another.
#include "reproduction/paper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "reproduction/published_memory.h"

namespace teratron::testing {
namespace {

using namespace plan;

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Paper small_paper(const std::string& rest, const std::string& cluster = "dgx-a100") {
  const std::string text = "cluster = \"" + cluster +
                           "\"\n\n[settings]\nall = { num_layers = 4, hidden_size = 512, num_attention_heads = 8, "
                           "vocab_size = 1024, seq_length = 256, micro_batch_size = 1, bf16 = true }\n" +
                           rest;
  return read_paper(EmbeddedFile{.name = "small", .text = text});
}

// A run beside itself is 100 %, by either program.
TEST(Paper, SharesSpeedUpsAndCurvesAreOfOneProgram) {
  const Reproduction small = reproduce_paper(small_paper(R"(
teratron = { recompute_granularity = "full" }
[[tables]]
name = "scaling"
base = { dp = 2 }
cells = [{ name = "share", unit = "%", run = { dp = 2 } }, { name = "speed-up", unit = "x", run = { dp = 2 } }]
[[tables]]
name = "rates"
unit = "PFLOP/s"
cells = [{ name = "a" }, { name = "b", run = { dp = 2 }, teratron = false }]
[[curves]]
unit = "PFLOP/s"
of = ["rates"]
)"));
  EXPECT_DOUBLE_EQ(small.cells.at(0).ours, 100);
  EXPECT_DOUBLE_EQ(small.cells[0].teratron.value(), 100);
  EXPECT_DOUBLE_EQ(small.cells.at(1).ours, 1);
  EXPECT_DOUBLE_EQ(small.cells[1].teratron.value(), 1);
  const std::vector<Curve::Point>& points = small.curves.at(0).points;
  ASSERT_EQ(points.size(), 2U);
  EXPECT_DOUBLE_EQ(points[0].ours, small.cells.at(2).ours);
  EXPECT_DOUBLE_EQ(points[0].teratron.value(), small.cells[2].teratron.value());
  EXPECT_FALSE(points[1].teratron);
}

TEST(Paper, CellsThatMeanNothingForTeratronHaveNoNumberOfIt) {
  const Reproduction small = reproduce_paper(small_paper(R"(
[[tables]]
name = "rates"
unit = "k tokens/s"
cells = [
  { name = "a", published = 2 },
  { name = "b", published = 1, teratron = false },
  { name = "a", beside = "b", uncounted = "derived", assumed = "a note" },
  { name = "huge", published = "out of memory", run = { num_layers = 96, hidden_size = 12288 }, teratron = false },
  { name = "out of memory", unit = "runs", published = 1 },
]
)"));
  ASSERT_EQ(small.cells.size(), 4U);
  EXPECT_TRUE(small.cells[0].teratron);
  EXPECT_FALSE(small.cells[1].teratron);
  const ReproducedCell& ratio = small.cells[2];
  EXPECT_EQ(ratio.published, 2);
  EXPECT_FALSE(ratio.teratron);
  EXPECT_EQ(ratio.uncounted, "derived");
  EXPECT_EQ(ratio.assumed, "a note");
  EXPECT_EQ(small.cells[3].ours, 1);
  EXPECT_EQ(small.cells[3].teratron, 0);
}

// Two ranks share each sequence of 512 tokens: 4 sequences, 8 shares.
TEST(Paper, UnitsAreOfWholeSequencesWhereRanksSplitThem) {
  const std::string split = R"(
[[tables]]
name = "split"
context = 2
updates = 1
run = { dp = 2, global_batch_size = 8 }
cells = [{ name = "a", unit = "TFLOP/s" }, { name = "b", unit = "PFLOP/s" }, { name = "c", unit = "k tokens/s" },
  { name = "d", unit = "sequences/s" }, { name = "e", unit = "ZettaFLOP" }]
)";
  Paper paper = small_paper(split);
  for (const bool counts_recompute : {false, true}) {
    paper.counts_recompute = counts_recompute;
    const Reproduction small = reproduce_paper(paper);
    const auto ours = [&](std::size_t i) { return small.cells.at(i).ours; };
    EXPECT_DOUBLE_EQ(1e3 * ours(1), 2 * ours(0));
    EXPECT_DOUBLE_EQ(2 * 512 * ours(3), 1e3 * ours(2));
    const double s = 512, h = 512, l = 4, words = 1024;
    const double operations = 96 * 4 * s * l * h * h * (1 + s / (6 * h) + words / (16 * l * h));
    EXPECT_DOUBLE_EQ(1e21 * ours(4), operations);
    if (counts_recompute) {
      EXPECT_DOUBLE_EQ(2e12 * ours(0), operations * ours(2) * 1e3 / (4 * s));
    }
  }
}

// 34 bytes a column and 8 a head's column of each token and layer, and 10 a logit.
TEST(Paper, MegatronsBytesAreOfAllSequencesOfAMicroBatch) {
  TrainConfig run = small_paper("[[tables]]\ncells = [{ name = 'a' }]\n").cells.at(0).run;
  run.batch.micro_batch_size = 1;
  const double one = bytes_by_megatron(run);
  run.batch.micro_batch_size = 3;
  EXPECT_DOUBLE_EQ(bytes_by_megatron(run) - one, 2 * 256 * (4 * (34 * 512 + 8 * 64) + 10 * 1024));
}

TEST(Paper, TeraPipesSettingsAreToldApartByAllThatIsSet) {
  const std::string rows = R"(
[[tables]]
name = "Figure 5, without slices"
unit = "s"
value = "whole"
run = { pp = 2 }
cells = [
  { name = "setting 1", published = 1, run = { global_batch_size = 4 } },
  { name = "setting 2", published = 4, run = { global_batch_size = 8 } },
  { name = "setting 3", published = 6, run = { global_batch_size = 8, dp = 2 }, teratron = false },
]
)";
  const Reproduction small = reproduce_terapipe(small_paper(rows, "p3.16xlarge"));
  ASSERT_EQ(small.cells.size(), 3U);
  EXPECT_GT(small.cells[1].ours, 1.2 * small.cells[0].ours);
  EXPECT_GT(small.cells[2].ours, small.cells[0].ours);  // as many micro-batches a copy, and a sum over the copies
  EXPECT_TRUE(small.cells[1].teratron);
  EXPECT_FALSE(small.cells[2].teratron);
  EXPECT_EQ(small.ranking.value().pairs, 3);  // none has a row with slices
  const Reproduction faster = reproduce_terapipe(small_paper(rows, "dgx-a100"));
  EXPECT_LT(faster.cells[0].ours, small.cells[0].ours);
}

TEST(Paper, UnknownWordsAreErrorsWithTheirLine) {
  const auto expect = [](const std::string& cell, const std::string& message) {
    EXPECT_THAT([&] { small_paper("[causes]\nslow = \"it is slow\"\n[[tables]]\ncells = [{ " + cell + " }]\n"); },
                ThrowsMessage<UserError>(HasSubstr(message)));
  };
  expect("run = { like = 'setting 1' }", "small:8: 'like' is 'setting 1'; there are all");
  expect("cause = 'slwo'", "small:8: 'cause' is 'slwo'; there are slow");
  expect("published = 'out of memroy'", "small:8: 'published' is 'out of memroy'; there are out of memory");
  EXPECT_THAT([] { small_paper("[[tables]]\nvalue = 'hole'\ncells = [{ name = 'a' }]\n"); },
              ThrowsMessage<UserError>(HasSubstr("small:6: 'value' is 'hole'")));
}

}  // namespace
}  // namespace teratron::testing

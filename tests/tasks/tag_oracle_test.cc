// Spans in labels of words beside seqeval's (tests/oracle/tag_cases.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "checkpoint/damage.h"
#include "oracle/python.h"
#include "tasks/tag/spans.h"

namespace teratron::testing {
namespace {

using Json = nlohmann::json;
using Labels = std::vector<std::int32_t>;

void expect_counts(const tag::SpanCounts& ours, const Json& expected, const std::string& line) {
  EXPECT_NEAR(ours.precision(), expected[0].get<double>(), 1e-12) << line;
  EXPECT_NEAR(ours.recall(), expected[1].get<double>(), 1e-12) << line;
  EXPECT_NEAR(ours.f1(), expected[2].get<double>(), 1e-12) << line;
}

TEST(TagOracle, SpansAreThoseOfSeqevalInAnyOrderOfLabels) {
  if (const std::string why = why_no_oracle(); !why.empty()) GTEST_SKIP() << why;
  if (!oracle_has("seqeval")) GTEST_SKIP() << "no seqeval; scripts/oracle-env installs it";
  const TemporaryFolder folder;
  ASSERT_EQ(run_oracle("tag_cases.py", {folder.path().string()}, folder / "log"), 0) << read_file(folder / "log");
  std::istringstream lines(read_file(folder / "cases.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const Json one = Json::parse(line);
    const tag::SpanLabels labels(one["names"].get<std::vector<std::string>>());
    ASSERT_TRUE(labels.are_spans()) << line;
    tag::SpanScores scores(labels);
    for (const Json& sentence : one["sentences"]) {
      scores.add(labels.spans_in(sentence[0].get<Labels>()), labels.spans_in(sentence[1].get<Labels>()));
    }
    expect_counts(scores.all, one["all"], line);
    for (std::size_t type = 0; type < labels.types().size(); ++type) {
      const tag::SpanCounts& ours = scores.by_type[type];
      const auto expected = one["by_type"].find(labels.types()[type]);
      if (expected == one["by_type"].end()) {
        EXPECT_EQ(ours.labelled + ours.said, 0) << line;
      } else {
        expect_counts(ours, *expected, line);
        EXPECT_EQ(ours.labelled, (*expected)[3].get<std::int64_t>()) << line;
      }
    }
  }
  EXPECT_EQ(cases, 1000);
}

}  // namespace
}  // namespace teratron::testing

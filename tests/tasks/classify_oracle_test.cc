// Tables beside Python's csv module, and metrics beside scikit-learn and SciPy (tests/oracle/classify_cases.py).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "checkpoint/damage.h"
#include "oracle/python.h"
#include "tasks/custom/metrics.h"
#include "tasks/delimited.h"

namespace teratron::testing {
namespace {

using Json = nlohmann::json;

TEST(ClassifyOracle, TablesAreReadAsByPythonAndMetricsAreScikitLearns) {
  if (const std::string why = why_no_oracle(); !why.empty()) GTEST_SKIP() << why;
  const TemporaryFolder folder;
  ASSERT_EQ(run_oracle("classify_cases.py", {folder.path().string()}, folder / "log"), 0) << read_file(folder / "log");
  std::size_t number = 0;
  for (const Json& expected : Json::parse(read_file(folder / "tables.json"))) {
    const std::filesystem::path file = folder / fmt::format("{}.csv", number++);
    const std::string text = read_file(file);
    DelimitedReader reader(text, Delimiter::kComma, file);
    Json rows = Json::array();
    while (reader.next()) rows.push_back(reader.cells());
    EXPECT_EQ(rows, expected) << Json(text);
  }
  EXPECT_EQ(number, 600U);
  std::istringstream lines(read_file(folder / "metrics.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(lines, line); ++cases) {
    const Json one = Json::parse(line);
    std::array<double, 3> ours = {};
    if (const auto count = one["count"].get<std::int64_t>(); count > 0) {
      const custom::LabelMetrics metrics = custom::label_metrics(
          one["labels"].get<std::vector<std::int32_t>>(), one["predicted"].get<std::vector<std::int32_t>>(), count);
      ours = {metrics.accuracy, metrics.f1_macro, metrics.matthews};
    } else {
      const custom::NumberMetrics metrics =
          custom::number_metrics(one["labels"].get<std::vector<double>>(), one["predicted"].get<std::vector<double>>());
      ours = {metrics.pearson, metrics.spearman, metrics.mean_squared_error};
    }
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const double expected = one["expected"][i].get<double>();
      EXPECT_NEAR(ours[i], expected, 1e-9 * std::max(1.0, expected)) << "metric " << i << " of " << line;
    }
  }
  EXPECT_EQ(cases, 1000);
}

}  // namespace
}  // namespace teratron::testing

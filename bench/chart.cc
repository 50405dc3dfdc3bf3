// Draws for the benchmarks in Python: a chart of lines as JSON from standard input, or a list of charts of bars, its
// SVG on standard output.
//   build/release/bench_chart <bench/results/pipeline_slices.json >bench/results/pipeline_slices.svg
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "program.h"
#include "report/bar_chart.h"
#include "report/line_chart.h"

namespace teratron::svg {
namespace {

LineChart read_lines(const nlohmann::json& json) {
  LineChart chart{json.at("title"), json.at("x_axis"), json.at("y_axis"), {}, {}};
  if (json.contains("y_least")) chart.y_least = json.at("y_least").get<double>();
  for (const nlohmann::json& line : json.at("lines")) {
    using Pairs = std::vector<std::pair<double, double>>;
    chart.lines.push_back({line.at("name"), line.at("points").get<Pairs>(), line.value("spread", Pairs())});
  }
  return chart;
}

std::vector<BarChart> read_bars(const nlohmann::json& json) {
  std::vector<BarChart> charts;
  for (const nlohmann::json& each : json) {
    charts.push_back({each.at("title"), each.at("axis"), each.at("series").get<std::vector<std::string>>(), {}});
    for (const nlohmann::json& group : each.at("groups")) {
      charts.back().groups.push_back({group.at("label"), group.at("values").get<std::vector<double>>()});
    }
  }
  return charts;
}

int run(std::span<char*>) {
  try {
    const nlohmann::json json = nlohmann::json::parse(std::cin);
    fmt::print("{}", json.is_array() ? to_svg(read_bars(json)) : to_svg(read_lines(json)));
  } catch (const nlohmann::json::exception& error) {
    throw_user_error("standard input is no chart: {}", error.what());
  }
  return 0;
}

}  // namespace
}  // namespace teratron::svg

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::svg::run); }

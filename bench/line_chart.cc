// Draws lines for the benchmarks in Python: a chart as JSON from standard input, its SVG on standard output.
//   build/release/bench_line_chart <bench/results/pipeline_slices.json >bench/results/pipeline_slices.svg
#include "report/line_chart.h"

#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>

#include "program.h"

namespace teratron::svg {
namespace {

LineChart read_chart(std::istream& in) {
  const nlohmann::json json = nlohmann::json::parse(in);
  LineChart chart{json.at("title"), json.at("x_axis"), json.at("y_axis"), {}, json.value("y_least", 0.0)};
  for (const nlohmann::json& line : json.at("lines")) {
    using Pairs = std::vector<std::pair<double, double>>;
    chart.lines.push_back({line.at("name"), line.at("points").get<Pairs>(), line.value("spread", Pairs())});
  }
  return chart;
}

int run(std::span<char*>) {
  try {
    fmt::print("{}", to_svg(read_chart(std::cin)));
  } catch (const nlohmann::json::exception& error) {
    throw_user_error("standard input is no chart: {}", error.what());
  }
  return 0;
}

}  // namespace
}  // namespace teratron::svg

int main(int count, char** arguments) { return teratron::run_program(count, arguments, teratron::svg::run); }

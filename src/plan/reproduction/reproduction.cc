#include "plan/reproduction/reproduction.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "console/text_table.h"
#include "report/bar_chart.h"

namespace teratron::plan {
namespace {

struct Paper {
  std::string_view name;
  Reproduction (*reproduce)();
};
constexpr std::array kPapers = {Paper{"megatron", reproduce_megatron}, Paper{"terapipe", reproduce_terapipe}};

std::string difference(const ReproducedCell& cell) {
  if (cell.unit == "%") return fmt::format("{:+.1f} points", cell.ours - cell.published);
  return fmt::format("{:+.1f} %", 100 * cell.error());
}

}  // namespace

double Reproduction::mean_error() const {
  double sum = 0;
  for (const ReproducedCell& cell : cells) sum += std::abs(cell.error());
  return cells.empty() ? 0 : sum / static_cast<double>(cells.size());
}

double Reproduction::worst_error() const {
  double worst = 0;
  for (const ReproducedCell& cell : cells) worst = std::max(worst, std::abs(cell.error()));
  return worst;
}

Reproduction Reproduction::without_unmet() const {
  Reproduction rest = *this;
  std::erase_if(rest.cells, [](const ReproducedCell& cell) { return !cell.unmet.empty(); });
  return rest;
}

std::vector<std::string_view> reproduction_names() {
  std::vector<std::string_view> names;
  for (const Paper& paper : kPapers) names.push_back(paper.name);
  return names;
}

Reproduction reproduce(std::string_view name) {
  for (const Paper& paper : kPapers) {
    if (paper.name == name) return paper.reproduce();
  }
  throw_user_error("there is no paper '{}' to reproduce; there are {}", name, fmt::join(reproduction_names(), ", "));
}

std::string text_of(const Reproduction& reproduction) {
  using enum Align;
  std::string text = reproduction.title + "\n";
  TextTable cells({kLeft, kRight, kRight, kLeft, kRight, kLeft});
  cells.row({"cell", "published", "ours", "", "error", ""});
  for (const ReproducedCell& cell : reproduction.cells) {
    cells.row({cell.name, fmt::format("{:.4g}", cell.published), fmt::format("{:.4g}", cell.ours), cell.unit,
               difference(cell), cell.is_fitted ? "fitted to" : ""});
  }
  text += cells.text();
  text += fmt::format("  mean error {:.1f} %, worst {:.1f} %\n", 100 * reproduction.mean_error(),
                      100 * reproduction.worst_error());
  if (const Reproduction met = reproduction.without_unmet(); met.cells.size() < reproduction.cells.size()) {
    text += fmt::format("  without the {} that are not met: mean error {:.1f} %, worst {:.1f} %\n",
                        reproduction.cells.size() - met.cells.size(), 100 * met.mean_error(), 100 * met.worst_error());
  }
  if (reproduction.ranking) {
    text += fmt::format("  plans of one model that differ by more than 5 %: {} pairs, {} the other way round here\n",
                        reproduction.ranking->pairs, reproduction.ranking->wrong.size());
    for (const std::string& pair : reproduction.ranking->wrong) text += fmt::format("    {}\n", pair);
  }
  for (const ReproducedCell& cell : reproduction.cells) {
    if (!cell.unmet.empty()) text += fmt::format("  not met: {} ({}): {}\n", cell.name, cell.unit, cell.unmet);
    if (!cell.assumed.empty()) text += fmt::format("  {} ({}): {}\n", cell.name, cell.unit, cell.assumed);
  }
  for (const ReproducedCell& cell : reproduction.cells) {
    if (!cell.slices.empty()) text += fmt::format("  slices of {}: {}\n", cell.name, fmt::join(cell.slices, ","));
  }
  TextTable fitted({kLeft, kRight, kLeft});
  text += "Constants\n";
  for (const Constant& constant : reproduction.fitted) {
    fitted.row({constant.name, fmt::format("{:.4g}", constant.value), constant.from});
  }
  return text + fitted.text();
}

std::string to_json(const Reproduction& reproduction) {
  nlohmann::json json{{"title", reproduction.title},
                      {"cells", nlohmann::json::array()},
                      {"mean_error", reproduction.mean_error()},
                      {"worst_error", reproduction.worst_error()},
                      {"fitted", nlohmann::json::array()}};
  for (const ReproducedCell& cell : reproduction.cells) {
    nlohmann::json one{{"name", cell.name}, {"unit", cell.unit},     {"published", cell.published},
                       {"ours", cell.ours}, {"error", cell.error()}, {"fitted", cell.is_fitted}};
    if (!cell.unmet.empty()) one["unmet"] = cell.unmet;
    if (!cell.assumed.empty()) one["assumed"] = cell.assumed;
    if (!cell.slices.empty()) one["slices"] = cell.slices;
    json["cells"].push_back(std::move(one));
  }
  for (const Constant& constant : reproduction.fitted) {
    json["fitted"].push_back({{"name", constant.name}, {"value", constant.value}, {"from", constant.from}});
  }
  if (reproduction.ranking) {
    json["ranking"] = {{"pairs", reproduction.ranking->pairs}, {"wrong", reproduction.ranking->wrong}};
  }
  return json.dump();
}

std::string to_svg(const Reproduction& reproduction) {
  // A chart for each first part of a name, in the order in which they come.
  std::vector<svg::BarChart> charts;
  for (const ReproducedCell& cell : reproduction.cells) {
    const std::size_t comma = cell.name.find(", ");
    if (comma == std::string::npos) continue;
    const std::string title = cell.name.substr(0, comma);
    auto chart = std::ranges::find(charts, title, &svg::BarChart::title);
    if (chart == charts.end()) {
      charts.push_back({.title = title, .axis = cell.unit, .series = {"published", "ours"}});
      chart = std::prev(charts.end());
    }
    chart->groups.push_back({.label = cell.name.substr(comma + 2), .values = {cell.published, cell.ours}});
  }
  return svg::to_svg(charts);
}

}  // namespace teratron::plan

// A reproduction as JSON and as a picture.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/bar_chart.h"
#include "reproduction/judgement.h"
#include "reproduction/reproduction.h"
#include "reproduction/reproduction_summary.h"

namespace teratron::plan {
namespace {

nlohmann::json json_of(const std::optional<double>& value) { return value ? nlohmann::json(*value) : nullptr; }

nlohmann::json json_of(const ReproducedCell& cell) {
  nlohmann::json json{{"table", cell.table},
                      {"name", cell.name},
                      {"unit", cell.unit},
                      {"source", cell.source},
                      {"published", cell.published},
                      {"ours", cell.ours},
                      {"teratron", json_of(cell.teratron)},
                      {"error", json_of(error_of(cell))},
                      {"tolerance", tolerance_of(cell)},
                      {"met", is_met(cell)},
                      {"fitted", cell.is_fitted},
                      {"counted", cell.uncounted.empty()}};
  if (!cell.uncounted.empty()) json["uncounted"] = cell.uncounted;
  if (!cell.cause.empty() && !is_met(cell)) json["cause"] = cell.cause;
  if (!cell.assumed.empty()) json["assumed"] = cell.assumed;
  return json;
}

nlohmann::json json_of(const Curve& curve) {
  nlohmann::json points = nlohmann::json::array();
  for (const Curve::Point& point : curve.points)
    points.push_back({{"x", point.x}, {"ours", point.ours}, {"teratron", json_of(point.teratron)}});
  return {{"title", curve.title},
          {"x_axis", curve.x_axis},
          {"unit", curve.unit},
          {"published", curve.published},
          {"points", points}};
}

nlohmann::json json_of(const SlicingPair& pair) {
  return {{"name", pair.name},
          {"source", pair.source},
          {"published", pair.published},
          {"ours", pair.ours},
          {"seconds_of_published", pair.seconds_of_published},
          {"seconds_of_ours", pair.seconds_of_ours}};
}

nlohmann::json json_of(const Score& score) {
  return {{"kind", name_of(score.kind)},
          {"cells", score.cells},
          {"met", score.met},
          {"mean_error", json_of(score.mean_error)},
          {"worst_error", json_of(score.worst_error)}};
}

template <class Items>
nlohmann::json json_list(const Items& items) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& item : items) list.push_back(json_of(item));
  return list;
}

// Bars for the cells of one table and unit. Teratron has bars if all cells have its value.
svg::BarChart chart_of(std::span<const ReproducedCell> cells) {
  const bool has_teratron = std::ranges::all_of(cells, [](const auto& cell) { return cell.teratron.has_value(); });
  svg::BarChart chart{.title = cells.front().table, .axis = cells.front().unit, .series = {"published", "ours"}};
  if (has_teratron) chart.series.emplace_back("Teratron");
  for (const ReproducedCell& cell : cells) {
    chart.groups.push_back({.label = cell.name, .values = {cell.published, cell.ours}});
    if (has_teratron) chart.groups.back().values.push_back(*cell.teratron);
  }
  return chart;
}

svg::BarChart chart_of(const Curve& curve) {
  const bool has_teratron =
      std::ranges::all_of(curve.points, [](const auto& point) { return point.teratron.has_value(); });
  svg::BarChart chart{.title = curve.title, .axis = curve.unit + " by " + curve.x_axis, .series = {"ours"}};
  if (has_teratron) chart.series.emplace_back("Teratron");
  for (const Curve::Point& point : curve.points) {
    chart.groups.push_back({.label = point.x, .values = {point.ours}});
    if (has_teratron) chart.groups.back().values.push_back(*point.teratron);
  }
  return chart;
}

}  // namespace

std::string to_json(const Reproduction& reproduction) {
  nlohmann::json json{{"title", reproduction.title},
                      {"bounds", bounds_of_judgement()},
                      {"cells", json_list(reproduction.cells)},
                      {"scores", json_list(scores_of(reproduction.cells, Counted::kAll))},
                      {"scores_of_predictions", json_list(scores_of(reproduction.cells, Counted::kPredictions))},
                      {"curves", json_list(reproduction.curves)},
                      {"slicings", json_list(reproduction.slicings)},
                      {"choices", nlohmann::json::array()},
                      {"fitted", nlohmann::json::array()}};
  for (const LayoutChoice& choice : reproduction.choices) {
    json["choices"].push_back(
        {{"layouts", choice.layouts}, {"chosen", choice.chosen}, {"fastest", choice.fastest}, {"lost", choice.lost}});
  }
  for (const Constant& constant : reproduction.fitted)
    json["fitted"].push_back({{"name", constant.name}, {"value", constant.value}, {"from", constant.from}});
  if (reproduction.ranking)
    json["ranking"] = {{"pairs", reproduction.ranking->pairs}, {"wrong", reproduction.ranking->wrong}};
  return json.dump();
}

std::string to_svg(const Reproduction& reproduction) {
  if (reproduction.is_summary) return summary_svg(reproduction);
  std::vector<svg::BarChart> charts;
  const std::span cells(reproduction.cells);
  for (std::size_t i = 0, end = 0; i < cells.size(); i = end) {
    while (end < cells.size() && cells[end].table == cells[i].table && cells[end].unit == cells[i].unit) ++end;
    charts.push_back(chart_of(cells.subspan(i, end - i)));
  }
  for (const Curve& curve : reproduction.curves) charts.push_back(chart_of(curve));
  return svg::to_svg(charts);
}

}  // namespace teratron::plan

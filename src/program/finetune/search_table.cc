#include "finetune/search_table.h"

#include <fmt/format.h>

#include "console/text_table.h"

namespace teratron {

std::string search_table(const std::vector<SearchedPoint>& points, std::size_t chosen) {
  std::vector<std::string> heading = {"batch size", "learning rate", "iteration"};
  for (const TaskScore& score : points[chosen].validation) heading.emplace_back(score.name);
  TextTable table(std::vector<Align>(heading.size() + 1, Align::kRight));
  table.row(heading);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const SearchPoint& point = points[i].point;
    std::vector<std::string> row = {fmt::format("{}", point.batch), fmt::format("{}", point.learning_rate),
                                    fmt::format("{}", points[i].iteration)};
    for (const TaskScore& score : points[i].validation) row.push_back(fmt::format("{:.2f}", score.value));
    if (points[i].validation.empty()) row.back() = "diverged";
    if (i == chosen) row.emplace_back("chosen");
    table.row(row);
  }
  return "search, by the first score of --valid-data:\n" + table.text();
}

}  // namespace teratron

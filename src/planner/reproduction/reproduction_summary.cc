#include "reproduction/reproduction_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "console/text_table.h"
#include "report/svg.h"
#include "reproduction/judgement.h"

namespace teratron::plan {
namespace {

using Cells = std::vector<const ReproducedCell*>;
using CellRule = std::function<bool(const ReproducedCell&)>;

double size_of_error(const ReproducedCell& cell) { return std::abs(*error_of(cell)); }
bool is_memory(const ReproducedCell& cell) { return kind_of(cell) == CellKind::kMemory; }

Cells cells_where(const Reproduction& reproduction, const CellRule& is_chosen) {
  Cells cells;
  for (const ReproducedCell& cell : reproduction.cells) {
    if (cell.uncounted.empty() && is_chosen(cell)) cells.push_back(&cell);
  }
  return cells;
}

std::vector<std::string> sources_of(const Reproduction& reproduction) {
  std::vector<std::string> sources;
  for (const ReproducedCell& cell : reproduction.cells) {
    if (std::ranges::count(sources, source_of(cell)) == 0) sources.push_back(source_of(cell));
  }
  return sources;
}

struct Errors {
  double mean = 0, worst = 0;
};

Errors errors_of(const Cells& cells) {
  Errors errors;
  for (const ReproducedCell* cell : cells) {
    errors.mean += size_of_error(*cell) / static_cast<double>(cells.size());
    errors.worst = std::max(errors.worst, size_of_error(*cell));
  }
  return errors;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::vector<std::string> row_of(std::string what, const Cells& fitting, const Cells& judging) {
  std::vector<std::string> row = {std::move(what)};
  for (const Cells* half : {&fitting, &judging}) {
    const Errors errors = errors_of(*half);
    row.push_back(fmt::format("{}", half->size()));
    row.push_back(half->empty() ? "" : percent(errors.mean));
    row.push_back(half->empty() ? "" : percent(errors.worst));
  }
  return row;
}

std::string text_of_sources(const Reproduction& reproduction) {
  TextTable table(
      {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight, Align::kRight});
  table.row({"speed", "fitting", "mean error", "worst", "judging", "mean error", "worst"});
  const auto halves = [&](std::string what, const CellRule& is_chosen) {
    table.row(row_of(std::move(what),
                     cells_where(reproduction, [&](const auto& cell) { return is_chosen(cell) && cell.is_fitted; }),
                     cells_where(reproduction, [&](const auto& cell) { return is_chosen(cell) && !cell.is_fitted; })));
  };
  for (const std::string& source : sources_of(reproduction)) {
    halves("  " + source, [&](const auto& cell) { return source_of(cell) == source && !is_memory(cell); });
  }
  halves("  all", [](const auto& cell) { return !is_memory(cell); });
  table.heading("memory, to which nothing is fitted");
  for (const std::string& source : sources_of(reproduction)) {
    const auto chosen = [&](const auto& cell) { return source_of(cell) == source && is_memory(cell); };
    if (!cells_where(reproduction, chosen).empty()) halves("  " + source, chosen);
  }
  return table.text();
}

std::string verdict(const char* what, double value, double bar) {
  return fmt::format("  {} {}, at most {}: {}\n", what, percent(value), percent(bar), value <= bar ? "met" : "not met");
}

std::string text_of_worst_choice(const std::vector<LayoutChoice>& choices) {
  if (choices.empty()) return "";
  const LayoutChoice& worst = choices.front();
  std::string text = fmt::format("Choices of {} models of which a source gives several layouts on the same devices\n",
                                 choices.size()) +
                     verdict("slower than the fastest published", worst.lost, kMostLostByChoice);
  if (worst.lost > 0) text += fmt::format("    {} in place of {}\n", worst.chosen, worst.fastest);
  return text;
}

std::string text_of_bars(const Reproduction& reproduction) {
  const Errors speed =
      errors_of(cells_where(reproduction, [](const auto& cell) { return !cell.is_fitted && !is_memory(cell); }));
  const Errors memory = errors_of(cells_where(reproduction, is_memory));
  return "Bars of the judging half\n" + verdict("mean error of speed", speed.mean, kMostMeanError) +
         verdict("worst error of speed", speed.worst, kMostWorstError) +
         verdict("worst error of memory", memory.worst, kMostMemoryError) + text_of_worst_choice(reproduction.choices);
}

std::string text_of_worst(const Reproduction& reproduction) {
  Cells cells = cells_where(reproduction, [](const auto& cell) { return !cell.is_fitted && !is_met(cell); });
  std::ranges::stable_sort(cells, [](const auto* a, const auto* b) { return size_of_error(*a) > size_of_error(*b); });
  TextTable table({Align::kLeft, Align::kRight, Align::kLeft});
  table.heading(fmt::format("Judging half, more than {:.0f} % off", 100 * kMostOfAmount));
  for (const ReproducedCell* cell : cells) {
    table.row({"  " + cell->full_name(), fmt::format("{:+.1f} %", 100 * *error_of(*cell)),
               cell->cause.empty() ? "no cause is known" : cell->cause});
  }
  return cells.empty() ? "" : table.text();
}

}  // namespace

std::string source_of(const ReproducedCell& cell) { return cell.table.substr(0, cell.table.find(':')); }

std::string summary_text(const Reproduction& reproduction) {
  TextTable constants({Align::kLeft, Align::kRight});
  constants.heading("Constants, fitted to the fitting half");
  for (const Constant& constant : reproduction.fitted) {
    constants.row({"  " + constant.name, fmt::format("{:.4g}", constant.value)});
  }
  return reproduction.title + "\n" + text_of_sources(reproduction) + text_of_bars(reproduction) +
         text_of_worst(reproduction) + constants.text();
}

std::string summary_svg(const Reproduction& reproduction) {
  constexpr double kLeft = 60, kTop = 50, kHeight = 320, kStep = 2.2, kGap = 30, kMost = 0.4, kLegend = 430;
  const std::vector<std::string> sources = sources_of(reproduction);
  const Cells all = cells_where(reproduction, [](const auto& cell) { return !is_memory(cell); });
  const double width = kLeft + kStep * static_cast<double>(all.size()) + kGap * static_cast<double>(sources.size() + 1);
  svg::Drawing drawing(width, kTop + kHeight + 40);
  drawing.text(kLeft, 24, svg::Anchor::kStart, 14, "Predicted over measured speed, a point a run");
  const auto y_of = [&](double error) { return kTop + kHeight / 2 * (1 - std::clamp(error, -kMost, kMost) / kMost); };
  for (const double line : {-0.4, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4}) {
    drawing.line(kLeft, y_of(line), width - kGap / 2, y_of(line), line == 0 ? "#444444" : "#dddddd");
    drawing.text(kLeft - 6, y_of(line) + 4, svg::Anchor::kEnd, 11, fmt::format("{:+.0f} %", 100 * line));
  }
  for (const auto& [half, name] : {std::pair{0, "fitting half"}, {1, "judging half"}}) {
    drawing.circle(kLegend + 110 * half, 20, 4, svg::series_color(static_cast<std::size_t>(half)));
    drawing.text(kLegend + 8 + 110 * half, 24, svg::Anchor::kStart, 12, name);
  }
  double x = kLeft + kGap / 2;
  for (const std::string& source : sources) {
    const double begin = x;
    for (const ReproducedCell* cell : all) {
      if (source_of(*cell) != source) continue;
      drawing.circle(x += kStep, y_of(*error_of(*cell)), 2.5, svg::series_color(cell->is_fitted ? 0 : 1));
    }
    drawing.text((begin + x) / 2, kTop + kHeight + 24, svg::Anchor::kMiddle, 12, source);
    x += kGap;
  }
  return std::move(drawing).finish();
}

}  // namespace teratron::plan

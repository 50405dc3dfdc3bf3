// The tables of a reproduction, for people.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "console/text_table.h"
#include "reproduction/judgement.h"
#include "reproduction/reproduction.h"
#include "reproduction/reproduction_summary.h"

namespace teratron::plan {
namespace {

using enum Align;

std::string number(double value) { return fmt::format("{:.4g}", value); }
std::string number(const std::optional<double>& value) { return value ? number(*value) : ""; }

std::string error_text(const ReproducedCell& cell) {
  const std::optional<double> error = error_of(cell);
  if (!error) return fmt::format("{:+.2f}", cell.ours - cell.published);
  return (*error < 0 ? "-" : "+") + text_of_error(kind_of(cell), std::abs(*error));
}

std::string verdict_of(const ReproducedCell& cell) {
  if (!cell.uncounted.empty()) return cell.uncounted;
  return is_met(cell) ? "met" : "not met";
}

std::string text_of_cells(const Reproduction& reproduction) {
  TextTable table({kLeft, kRight, kRight, kLeft, kRight, kLeft, kLeft, kRight, kLeft});
  table.row({"", "published", "ours", "", "error", "", "", "Teratron", "source"});
  std::string heading;
  for (const ReproducedCell& cell : reproduction.cells) {
    if (cell.table != heading) table.heading(cell.table);
    heading = cell.table;
    table.row({cell.name, number(cell.published), number(cell.ours), cell.unit, error_text(cell), verdict_of(cell),
               cell.is_fitted && cell.uncounted.empty() ? "fitted" : "", number(cell.teratron), cell.source});
  }
  return table.text();
}

std::vector<std::string> score_row(const Score& score, std::string what) {
  const auto error = [&](const std::optional<double>& value) {
    return value ? text_of_error(score.kind, *value) : std::string();
  };
  return {std::move(what), fmt::format("{} of {}", score.met, score.cells), error(score.mean_error),
          error(score.worst_error)};
}

std::string text_of_scores(const Reproduction& reproduction) {
  TextTable table({kLeft, kRight, kRight, kRight});
  table.heading("Scores, without the cells that are derived, contradictory, or 100 % or 1 by definition");
  table.row({"", "met", "mean error", "worst"});
  const std::vector<Score> predictions = scores_of(reproduction.cells, Counted::kPredictions);
  for (const Score& score : scores_of(reproduction.cells, Counted::kAll)) {
    table.row(score_row(score, std::string(name_of(score.kind))));
    const auto alone = std::ranges::find(predictions, score.kind, &Score::kind);
    table.row(score_row(alone == predictions.end() ? Score{.kind = score.kind} : *alone, "  predictions alone"));
  }
  return table.text();
}

std::string text_of_ranking(const RankedPairs& ranking) {
  std::string text =
      fmt::format("Order: of {} pairs of plans of one model that differ by more than 5 %, {} are the other way round\n",
                  ranking.pairs, ranking.wrong.size());
  for (const std::string& pair : ranking.wrong) text += fmt::format("  {}\n", pair);
  return text;
}

// "Figure 3, 1 token, 32 tokens; Figure 6, setting 8": the names of a table after its title.
std::string text_of_names(const std::vector<const ReproducedCell*>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool goes_on = i > 0 && cells[i - 1]->table == cells[i]->table;
    text += goes_on ? ", " + cells[i]->name : (i > 0 ? "; " : "") + cells[i]->full_name();
  }
  return text;
}

std::string text_of_missed(const Reproduction& reproduction) {
  std::vector<std::string> causes;  // in the order of the cells
  std::map<std::string, std::vector<const ReproducedCell*>> missed;
  for (const ReproducedCell& cell : reproduction.cells) {
    if (!cell.uncounted.empty() || is_met(cell)) continue;
    const std::string cause = cell.cause.empty() ? "no cause is known" : cell.cause;
    if (missed[cause].empty()) causes.push_back(cause);
    missed[cause].push_back(&cell);
  }
  std::string text;
  for (const std::string& cause : causes) text += fmt::format("  {}:\n    {}\n", text_of_names(missed[cause]), cause);
  return text.empty() ? "" : "Not met\n" + text;
}

std::string text_of_notes(const Reproduction& reproduction) {
  std::string text;
  for (const ReproducedCell& cell : reproduction.cells) {
    if (!cell.assumed.empty()) text += fmt::format("  {}: {}\n", cell.full_name(), cell.assumed);
  }
  return text.empty() ? "" : "Notes\n" + text;
}

std::string text_of_curve(const Curve& curve) {
  TextTable table({kRight, kRight, kRight});
  table.heading(fmt::format("{} ({}); published: {}", curve.title, curve.unit, curve.published));
  table.row({curve.x_axis, "ours", "Teratron"});
  for (const Curve::Point& point : curve.points) table.row({point.x, number(point.ours), number(point.teratron)});
  return table.text();
}

// "64 x 26, 56 x 6, 48"
std::string text_of_lengths(const std::vector<std::int64_t>& lengths) {
  std::vector<std::string> runs;
  for (std::size_t i = 0, end = 0; i < lengths.size(); i = end) {
    while (end < lengths.size() && lengths[end] == lengths[i]) ++end;
    runs.push_back(end - i == 1 ? fmt::format("{}", lengths[i]) : fmt::format("{} x {}", lengths[i], end - i));
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::string text_of_choices(const std::vector<LayoutChoice>& choices) {
  TextTable table({kRight, kLeft, kLeft, kRight});
  table.heading("Layouts of one model on the same devices: the one that this model takes for the fastest");
  table.row({"layouts", "chosen", "fastest as published", "slower by"});
  for (const LayoutChoice& choice : choices) {
    table.row({fmt::format("{}", choice.layouts), choice.chosen, choice.lost == 0 ? "the same" : choice.fastest,
               fmt::format("{:.1f} %", 100 * choice.lost)});
  }
  return choices.empty() ? "" : table.text();
}

std::string text_of_slicings(const std::vector<SlicingPair>& slicings) {
  if (slicings.empty()) return "";
  TextTable table({kLeft, kRight, kRight, kLeft});
  table.heading("Slices that the paper's program found, and ours: their number, seconds by this model, tokens of each");
  for (const SlicingPair& pair : slicings) {
    table.row({pair.name + ", published", fmt::format("{}", pair.published.size()), number(pair.seconds_of_published),
               text_of_lengths(pair.published)});
    table.row(
        {"  ours", fmt::format("{}", pair.ours.size()), number(pair.seconds_of_ours), text_of_lengths(pair.ours)});
  }
  return table.text();
}

std::string text_of_constants(const std::vector<Constant>& constants) {
  TextTable table({kLeft, kRight, kLeft});
  table.heading("Constants");
  for (const Constant& constant : constants) table.row({constant.name, number(constant.value), constant.from});
  return table.text();
}

}  // namespace

std::string text_of(const Reproduction& reproduction) {
  if (reproduction.is_summary) return summary_text(reproduction);
  std::string text = reproduction.title + "\nA cell is met where ours is within\n";
  for (const std::string& bound : bounds_of_judgement()) text += "  " + bound + "\n";
  text += "fitted: constants were fitted to its runs. Teratron: what Teratron itself would take there.\n";
  text += text_of_cells(reproduction) + text_of_scores(reproduction);
  if (reproduction.ranking) text += text_of_ranking(*reproduction.ranking);
  text += text_of_missed(reproduction) + text_of_notes(reproduction);
  for (const Curve& curve : reproduction.curves) text += text_of_curve(curve);
  text += text_of_slicings(reproduction.slicings) + text_of_choices(reproduction.choices);
  return reproduction.fitted.empty() ? text : text + text_of_constants(reproduction.fitted);
}

}  // namespace teratron::plan

#include "html/run_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "console/readable.h"
#include "data/data_path.h"
#include "eval/paper_results.h"
#include "pipeline/schedule.h"
#include "pipeline/token_slices.h"
#include "report/svg.h"

namespace teratron {
namespace {

// Titles of numbers of the log, in the page's order.
struct CurveTitle {
  const char *name, *title;
  double scale = 1;
};
constexpr auto kTitles = std::to_array<CurveTitle>({
    {"loss", "Training loss"},
    {"validation_loss", "Validation loss"},
    {"validation_perplexity", "Validation perplexity"},
    {"score", "Score"},
    {"lm_loss", "Loss of masked tokens"},
    {"sop_loss", "Loss of sentence order"},
    {"sop_accuracy", "Accuracy of sentence order"},
    {"learning_rate", "Learning rate"},
    {"gradient_norm", "Gradient norm"},
    {"tokens_per_second", "Tokens a second"},
    {"mfu", "MFU, %", 100},
    {"seconds", "Seconds an update"},
    {"global_batch_size", "Sequences an update"},
    {"loss_scale", "Loss scale"},
    {"skipped", "Skipped updates"},
});
constexpr std::array kDrawnOtherwise = {"consumed_samples", "consumed_tokens", kMemory, kPlannedMemory};

std::string title_of(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

bool varies(const svg::Points& points) {
  return std::ranges::any_of(points, [&](const auto& point) { return point.second != points.front().second; });
}

void add_chart(std::vector<svg::CurveChart>& charts, const std::vector<RunRecord>& runs, const CurveTitle& title) {
  svg::CurveChart chart{.title = title.title, .x_axis = "updates", .curves = {}};
  bool shows = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const svg::Points* const points = runs[i].curve(title.name);
    if (points == nullptr) continue;
    shows = shows || varies(*points);
    chart.curves.push_back({.name = runs[i].name, .color = i, .points = *points});
    if (title.scale == 1) continue;
    svg::Points& scaled = chart.curves.back().points;
    for (auto& point : scaled) point.second *= title.scale;
    std::erase_if(scaled, [](const auto& point) { return !std::isfinite(point.second); });
  }
  if (shows) charts.push_back(std::move(chart));
}

// Chart of the fullest rank's memory beside its plan. It is shown even where nothing varies.
void add_memory_chart(std::vector<svg::CurveChart>& charts, const std::vector<RunRecord>& runs) {
  constexpr double kMiB = 1 << 20, kGiB = 1 << 30;
  double most = 0;
  for (const RunRecord& run : runs) most = std::max(most, run.largest(kMemory).value_or(0));
  const double unit = most < kGiB ? kMiB : kGiB;
  svg::CurveChart chart{
      .title = fmt::format("Memory of the fullest rank, {} (dashed: planned)", unit == kMiB ? "MiB" : "GiB"),
      .x_axis = "updates",
      .curves = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const bool is_planned : {false, true}) {
      const svg::Points* const points = runs[i].curve(is_planned ? kPlannedMemory : kMemory);
      if (points == nullptr) continue;
      svg::CurveChart::Curve curve{
          .name = runs.size() == 1 ? (is_planned ? "planned" : "held") : runs[i].name + (is_planned ? ", planned" : ""),
          .color = i,
          .points = *points,
          .is_dashed = is_planned};
      for (auto& point : curve.points) point.second /= unit;
      chart.curves.push_back(std::move(curve));
    }
  }
  if (most > 0) charts.push_back(std::move(chart));
}

// Layers of every cell, by --pipeline-layout or evenly.
std::vector<std::int64_t> layers_of_cells(const RunRecord& run, std::int64_t cells) {
  const std::int64_t layers = run.last ? run.last->model.num_layers : run.count("num_layers", 0);
  std::vector<std::int64_t> of_cells;
  if (const std::string* const text = run.setting("pipeline_layout"); text != nullptr) {
    const char *at = text->data(), *const end = at + text->size();
    for (std::int64_t value = 0; at < end; ++at) {
      const auto [next, error] = std::from_chars(at, end, value);
      if (error != std::errc()) break;
      of_cells.push_back(value);
      at = next;
    }
  }
  if (std::ssize(of_cells) == cells) return of_cells;
  if (layers < cells) return std::vector<std::int64_t>(static_cast<std::size_t>(cells), 0);
  return pipeline::even_slices(layers, static_cast<int>(cells));
}

// Texts of the layers of every stage: "layers 1 to 6".
std::vector<std::string> layers_of_stages(const RunRecord& run, int stages) {
  const auto cells_each = static_cast<int>(std::clamp<std::int64_t>(run.count("virtual_stages", 1), 1, 1024));
  const std::string* const schedule = run.setting("schedule");
  const bool is_folded = schedule != nullptr && schedule->starts_with("v");
  const pipeline::CellMap map{.stages = stages,
                              .placement = is_folded ? pipeline::Placement::kFolded : pipeline::Placement::kInTurns};
  const std::vector<std::int64_t> layers = layers_of_cells(run, std::int64_t{stages} * cells_each);
  std::vector<std::string> texts(static_cast<std::size_t>(stages));
  if (std::ranges::all_of(layers, [](std::int64_t count) { return count <= 0; })) return texts;  // it says nothing
  std::int64_t first = 1;
  for (int cell = 0; cell < stages * cells_each; ++cell) {
    const std::int64_t count = layers[static_cast<std::size_t>(cell)];
    std::string& text = texts[static_cast<std::size_t>(map.stage_of(cell))];
    text += text.empty() ? "layers " : ", ";
    text += count == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, first + count - 1);
    first += count;
  }
  return texts;
}

}  // namespace

std::string readable_whole(double value) {
  constexpr double kMost = 1e18;
  return readable_integer(std::isnan(value) ? 0 : std::llround(std::clamp(value, -kMost, kMost)));
}

void add_curves(HtmlPage& page, const std::vector<RunRecord>& runs) {
  std::vector<svg::CurveChart> charts;
  std::set<std::string> names;
  for (const RunRecord& run : runs) {
    for (const auto& curve : run.curves) names.insert(curve.first);
  }
  for (const char* const name : kDrawnOtherwise) names.erase(name);
  for (const CurveTitle& title : kTitles) {
    if (names.erase(title.name) > 0) add_chart(charts, runs, title);
  }
  add_memory_chart(charts, runs);
  for (const std::string& name : names) {
    const std::string title = title_of(name);
    add_chart(charts, runs, {.name = name.c_str(), .title = title.c_str()});
  }
  page.charts(charts);
}

void add_layout(HtmlPage& page, const RunRecord& run, bool with_name) {
  constexpr std::int64_t kMost = 1024;
  const auto size_of = [&](const char* name) {
    return static_cast<int>(std::clamp<std::int64_t>(run.count(name, 1), 1, kMost));
  };
  const int tensor = size_of("tensor_model_parallel_size"), stages = size_of("pipeline_model_parallel_size");
  const int copies = size_of("data_parallel_size");
  page.paragraph(fmt::format("{}{}, {}, {}", with_name ? run.name + ": " : "", counted(copies, "copy", "copies"),
                             counted(stages, "pipeline stage"), counted(tensor, "tensor rank") + " a stage"));
  const std::vector<std::string> layers = layers_of_stages(run, stages);
  std::string grid = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><div class=\"ranks\" "
      "style=\"grid-template-columns:repeat({},max-content)\">\n",
      stages);
  for (int rank = 0; rank < tensor; ++rank) {
    for (int stage = 0; stage < stages; ++stage) {
      grid +=
          fmt::format("<div>stage {}{}<br>{}</div>\n", stage, tensor > 1 ? fmt::format(", tensor rank {}", rank) : "",
                      svg::escaped(layers[static_cast<std::size_t>(stage)]));
    }
  }
  page.html(grid + "</div></div>\n");
}

void add_data(HtmlPage& page, const std::vector<RunRecord>& runs) {
  std::vector<std::vector<std::string>> rows;
  for (const RunRecord& run : runs) {
    std::int64_t tokens = 0;
    bool are_all_there = true;
    const std::vector<double> weights = weights_of(run.data);
    const bool is_blend = !weights.empty();
    for (std::size_t i = is_blend ? 1 : 0; i < run.data.size(); i += is_blend ? 2 : 1) {
      const std::string& word = run.data[i];
      std::vector<std::string> row = {run.name, is_blend ? fmt::format("{} of {}", run.data[i - 1], word) : word};
      if (is_blend && weights[i / 2] == 0) {
        row.insert(row.end(), {"not read", ""});
        rows.push_back(std::move(row));
        continue;
      }
      try {
        const auto corpus = is_blend ? open_corpora(std::vector<std::string>{"1", word}).front().dataset
                                     : open_corpus(std::vector<std::string>{word});
        tokens += corpus->tokens();
        row.insert(row.end(), {readable_integer(corpus->documents()), readable_integer(corpus->tokens())});
      } catch (const UserError&) {
        are_all_there = false;
        row.insert(row.end(), {"not there now", ""});
      }
      rows.push_back(std::move(row));
    }
    const svg::Points* const read = run.curve("consumed_tokens");
    if (read == nullptr) continue;
    const std::string epochs =
        tokens > 0 && are_all_there
            ? fmt::format(", {:.3g} times all of it", read->back().second / static_cast<double>(tokens))
            : "";
    rows.push_back({run.name, "read in training", "", readable_whole(read->back().second) + epochs});
  }
  if (rows.empty()) return page.paragraph("The settings name no corpus.");
  page.table("", {"run", "corpus", "documents", "tokens"}, rows);
}

EvaluationResult read_evaluation(const std::filesystem::path& file) {
  const auto json = nlohmann::ordered_json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  EvaluationResult result{.name = file.stem().string(), .file = file.string(), .numbers = {}};
  if (json.is_object()) {
    for (const char* const key : {"evaluation", "task"}) {
      if (json.contains(key) && json[key].is_string()) result.name = json[key];
    }
    for (const auto& [name, value] : json.items()) {
      if (value.is_number()) result.numbers.emplace_back(name, value.get<double>());
    }
  }
  if (result.numbers.empty()) {
    throw_user_error("'{}' is no result of an evaluation: JSON of numbers, as eval writes by --json", file.string());
  }
  return result;
}

void add_evaluations(HtmlPage& page, const std::vector<EvaluationResult>& evaluations) {
  std::vector<std::vector<std::string>> rows;
  for (const EvaluationResult& evaluation : evaluations) {
    const bool is_repeated = std::ranges::count(evaluations, evaluation.name, &EvaluationResult::name) > 1;
    const std::string shown = is_repeated ? fmt::format("{} ({})", evaluation.name, evaluation.file) : evaluation.name;
    for (const auto& [name, value] : evaluation.numbers) {
      rows.push_back(
          {shown, title_of(name), fmt::format("{:.6g}", value), std::string(paper_result(evaluation.name, name))});
    }
  }
  page.table("", {"evaluation", "number", "here", "in the Megatron-LM paper"}, rows);
}

}  // namespace teratron

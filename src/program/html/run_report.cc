#include "html/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/median.h"
#include "console/readable.h"
#include "html/page.h"
#include "html/run_parts.h"
#include "model/family.h"
#include "report/svg.h"

namespace teratron {
namespace {

using Row = std::vector<std::string>;
using Runs = std::vector<RunRecord>;

// Head of a table with a column a run.
Row head_of(const Runs& runs, std::string first) {
  Row head = {std::move(first)};
  for (const RunRecord& run : runs) head.push_back(run.name);
  return head;
}

// A row with a cell a run.
Row named_row(const Runs& runs, std::string name, const auto& cell) {
  Row row = {std::move(name)};
  for (const RunRecord& run : runs) row.push_back(cell(run));
  return row;
}

// Adds a row, unless no run says anything.
void add_row(std::vector<Row>& rows, const Runs& runs, std::string name, const auto& cell) {
  Row row = named_row(runs, std::move(name), cell);
  if (std::any_of(row.begin() + 1, row.end(), [](const std::string& text) { return !text.empty(); })) {
    rows.push_back(std::move(row));
  }
}

std::string last_of(const RunRecord& run, const char* curve) {
  const svg::Points* const points = run.curve(curve);
  return points == nullptr ? "" : fmt::format("{:.4f}", points->back().second);
}

std::string text_of_point(const std::pair<double, double>& point) {
  return fmt::format("{:.4f} after update {}", point.second, readable_whole(point.first));
}

std::string least_of(const RunRecord& run, const char* curve) {
  const svg::Points* const points = run.curve(curve);
  if (points == nullptr) return "";
  return text_of_point(*std::ranges::min_element(*points, {}, &std::pair<double, double>::second));
}

std::string highest_of(const RunRecord& run, const char* curve) {
  const svg::Points* const points = run.curve(curve);
  if (points == nullptr) return "";
  return text_of_point(*std::ranges::max_element(*points, {}, &std::pair<double, double>::second));
}

std::vector<double> values_of(const svg::Points& points) {
  std::vector<double> values;
  for (const auto& point : points) values.push_back(point.second);
  return values;
}

std::string model_of(const RunRecord& run) {
  if (!run.last) {
    const std::string* const kind = run.setting("model_type");
    return kind == nullptr ? "" : *kind;
  }
  const ModelConfig& model = run.last->model;
  return fmt::format("{}, {} parameters", model.family().title,
                     readable_count(static_cast<double>(model.parameters())));
}

std::string progress_of(const RunRecord& run) {
  const svg::Points* const losses = run.curve("loss");
  const std::string done = readable_whole(losses == nullptr ? 0 : losses->back().first);
  const std::int64_t asked = run.count("train_iters", 0);
  return asked > 0 ? fmt::format("{} of {}", done, readable_integer(asked)) : done;
}

double sum_of(const RunRecord& run, const char* curve) {
  double sum = 0;
  const svg::Points* const points = run.curve(curve);
  if (points == nullptr) return sum;
  for (const auto& point : *points) sum += point.second;
  return sum;
}

std::optional<double> median_of(const RunRecord& run, const char* curve) {
  const svg::Points* const points = run.curve(curve);
  return points == nullptr ? std::nullopt : std::optional(median(values_of(*points)));
}

std::string memory_of(const RunRecord& run) {
  const auto text = [](double bytes) {
    return readable_bytes(static_cast<std::uint64_t>(std::clamp(bytes, 0.0, 1e18)));
  };
  const std::optional<double> most = run.largest(kMemory), planned = run.largest(kPlannedMemory);
  if (!most) return "";
  return text(*most) + (planned ? fmt::format(", {} planned", text(*planned)) : "");
}

void add_summary(HtmlPage& page, const Runs& runs) {
  std::vector<Row> rows;
  add_row(rows, runs, "model", model_of);
  add_row(rows, runs, "task", [](const RunRecord& run) { return run.last ? run.last->run.task : std::string(); });
  add_row(rows, runs, "updates", progress_of);
  add_row(rows, runs, "updates skipped by overflow", [](const RunRecord& run) -> std::string {
    const double skipped = sum_of(run, "skipped");
    return skipped > 0 ? readable_whole(skipped) : "";
  });
  add_row(rows, runs, "tokens read", [](const RunRecord& run) -> std::string {
    const svg::Points* const read = run.curve("consumed_tokens");
    return read == nullptr ? "" : readable_whole(read->back().second);
  });
  add_row(rows, runs, "last loss", [](const RunRecord& run) { return last_of(run, "loss"); });
  add_row(rows, runs, "least validation loss", [](const RunRecord& run) { return least_of(run, "validation_loss"); });
  add_row(rows, runs, "highest score", [](const RunRecord& run) { return highest_of(run, "score"); });
  add_row(rows, runs, "tokens a second, median", [](const RunRecord& run) {
    const std::optional<double> rate = median_of(run, "tokens_per_second");
    return rate ? readable_whole(*rate) : "";
  });
  add_row(rows, runs, "MFU, median", [](const RunRecord& run) {
    const std::optional<double> share = median_of(run, "mfu");
    return share ? fmt::format("{:.1f} %", 100 * *share) : "";
  });
  add_row(rows, runs, "memory of the fullest rank", memory_of);
  add_row(rows, runs, "time of updates", [](const RunRecord& run) -> std::string {
    return run.curve("seconds") == nullptr ? "" : readable_duration(sum_of(run, "seconds"));
  });
  page.table("", head_of(runs, ""), rows);
}

// Settings that differ, and in a fold all of them.
void add_settings(HtmlPage& page, const Runs& runs) {
  std::vector<Row> differing, all;
  std::set<std::string> names;
  for (const RunRecord& run : runs) {
    for (const auto& [name, ignored] : run.settings) {
      if (!names.insert(name).second) continue;
      const std::string key = name;
      const auto cell = [&key](const RunRecord& of) {
        const std::string* const value = of.setting(key);
        return value == nullptr ? "-" : *value;
      };
      const Row& row = all.emplace_back(named_row(runs, key, cell));
      if (!std::all_of(row.begin() + 1, row.end(), [&](const std::string& text) { return text == row[1]; })) {
        differing.push_back(row);
      }
    }
  }
  if (all.empty()) return page.paragraph("The folder holds no config.toml.");
  if (runs.size() > 1 && differing.empty()) page.paragraph("All settings are equal.");
  if (!differing.empty()) page.table("Settings that differ", head_of(runs, "setting"), differing);
  page.begin_fold("All settings");
  page.table("", head_of(runs, "setting"), all);
  page.end_fold();
}

void add_samples(HtmlPage& page, const Runs& runs) {
  for (const RunRecord& run : runs) {
    std::map<std::string, std::vector<const RunSample*>> of_prompt;
    for (const RunSample& sample : run.samples) of_prompt[sample.prompt].push_back(&sample);
    for (const auto& [prompt, samples] : of_prompt) {
      page.paragraph((runs.size() > 1 ? run.name + ": " : "") +
                     (prompt.empty() ? "after no prompt" : fmt::format("after \"{}\"", prompt)));
      const auto add = [&page](const RunSample& sample) {
        page.html(fmt::format("<div>update {}</div><pre>\n{}</pre>\n", readable_integer(sample.iteration),
                              svg::escaped(sample.text)));
      };
      add(*samples.back());
      if (samples.size() < 2) continue;
      page.begin_fold(fmt::format("{} earlier", samples.size() - 1));
      for (std::size_t i = samples.size() - 1; i-- > 0;) add(*samples[i]);
      page.end_fold();
    }
  }
}

void add_checkpoints(HtmlPage& page, const Runs& runs) {
  std::vector<Row> rows;
  for (const RunRecord& run : runs) {
    for (const SavedCheckpoint& checkpoint : run.checkpoints) {
      rows.push_back({run.name, readable_integer(checkpoint.iteration), readable_bytes(checkpoint.bytes),
                      checkpoint.is_best ? "best" : ""});
    }
  }
  if (rows.empty()) return page.paragraph("There is none.");
  page.table("", {"run", "update", "size", ""}, rows);
}

}  // namespace

std::string run_report(const Runs& runs, const std::vector<EvaluationResult>& evaluations) {
  std::vector<std::string> names;
  for (const RunRecord& run : runs) names.push_back(run.name);
  HtmlPage page(runs.size() == 1 ? fmt::format("Run {}", names.front()) : fmt::format("{} runs", runs.size()));
  add_summary(page, runs);
  page.section("Curves");
  if (runs.size() > 1) page.legend(names);
  add_curves(page, runs);
  page.section("Settings");
  add_settings(page, runs);
  page.section("Layout");
  for (const RunRecord& run : runs) add_layout(page, run, runs.size() > 1);
  page.section("Data");
  add_data(page, runs);
  if (std::ranges::any_of(runs, [](const RunRecord& run) { return !run.samples.empty(); })) {
    page.section("Samples");
    add_samples(page, runs);
  }
  if (!evaluations.empty()) {
    page.section("Evaluations");
    add_evaluations(page, evaluations);
  }
  page.section("Checkpoints");
  add_checkpoints(page, runs);
  return page.finish();
}

}  // namespace teratron

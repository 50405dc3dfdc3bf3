// Puts together what examples/zero-shot/run has found: Table 3 of the Megatron-LM paper on standard output, as
// Markdown, and Figure 6, the perplexity of text that was held out over the updates, in FOLDER/figure6.svg.
//   zero_shot_report FOLDER MODEL...
// Of each model the folder has MODEL.info.json, MODEL.loss.json and MODEL/metrics.jsonl, and results on test sets where
// there was one.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "console/readable.h"
#include "report/line_chart.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json read_json(const fs::path& file) {
  json value = json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) throw_user_error("'{}' is not a JSON object; remove it, and begin again", file.string());
  return value;
}

// An empty cell where there is no file, since that test set was left out.
std::string cell(const fs::path& file, const std::string& format, const char* key) {
  return fs::exists(file) ? fmt::format(fmt::runtime(format), read_json(file).at(key).get<double>()) : "";
}

// Without the first quarter, where all fall alike and so far that the rest could not be told apart.
svg::LineChart::Line curve_of(const fs::path& run, const std::string& name) {
  svg::LineChart::Line line{name, {}};
  std::istringstream metrics(read_file(run / "metrics.jsonl"));
  for (std::string text; std::getline(metrics, text);) {
    const json values = json::parse(text);
    if (values.at("kind") == "validation") {
      line.points.emplace_back(values.at("iteration"), std::exp(values.at("validation_loss").get<double>()));
    }
  }
  std::erase_if(line.points, [last = line.points.back().first](const auto& point) { return 4 * point.first < last; });
  return line;
}

void print_results(const fs::path& folder, std::span<const std::string> models) {
  fmt::print(
      "| model | layers, hidden, heads | parameters | held out: loss | perplexity per token | bits per byte "
      "| WikiText103 perplexity | LAMBADA accuracy | log-probability of its last words |\n|---|---|---|---|---|---|---|"
      "---|---|\n");
  for (const std::string& name : models) {
    const auto file = [&](const char* what) { return folder / fmt::format("{}.{}.json", name, what); };
    const json model = read_json(file("info")).at("model"), loss = read_json(file("loss"));
    fmt::print("| {} | {}, {}, {} | {} | {:.4f} | {:.2f} | {:.3f} | {} | {} | {} |\n", name,
               model.at("num_layers").get<int>(), model.at("hidden_size").get<int>(),
               model.at("num_attention_heads").get<int>(), readable_count(model.at("parameters").get<double>()),
               loss.at("loss").get<double>(), loss.at("perplexity").get<double>(),
               loss.at("bits_per_byte").get<double>(), cell(file("wikitext103"), "{:.2f}", "perplexity"),
               cell(file("lambada"), "{:.2f} %", "accuracy"), cell(file("lambada"), "{:.3f}", "mean_log_probability"));
  }
  fmt::print(
      "| the paper's | 24, 1024, 16 | 355 M | | | | 19.31 | 45.18 % | |\n"
      "| | 54, 1920, 20 | 2.5 B | | | | 12.76 | 61.73 % | |\n"
      "| | 72, 3072, 24 | 8.3 B | | | | 10.81 | 66.51 % | |\n\n");
}

void print_overlaps(const fs::path& folder) {
  std::string rows;
  for (const auto& [file, name] :
       std::map<std::string, std::string>{{"wikitext", "WikiText103"}, {"lambada", "LAMBADA"}}) {
    const fs::path path = folder / ("overlap." + file + ".json");
    if (!fs::exists(path)) continue;
    const json counts = read_json(path);
    rows += fmt::format("| {} | {} | {} | {:.2f} % |\n", name, readable_integer(counts.at("test_ngrams")),
                        readable_integer(counts.at("found")), 100 * counts.at("share").get<double>());
  }
  if (!rows.empty()) fmt::print("| test set | 8-grams | in the training text | share |\n|---|---|---|---|\n{}\n", rows);
}

// A step that was stopped and begun again has several lines.
void print_times(const fs::path& folder) {
  std::vector<std::pair<std::string, double>> steps;
  double total = 0;
  std::istringstream lines(read_file(folder / "seconds"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.rfind(": ");
    const std::string name = line.substr(0, colon);
    const double seconds = std::stod(line.substr(colon + 2));
    total += seconds;
    const auto known = std::ranges::find(steps, name, &std::pair<std::string, double>::first);
    if (known == steps.end())
      steps.emplace_back(name, seconds);
    else
      known->second += seconds;
  }
  fmt::print("| step | minutes |\n|---|---|\n");
  for (const auto& [name, seconds] : steps) {
    if (seconds >= 6) fmt::print("| {} | {:.1f} |\n", name, seconds / 60);
  }
  fmt::print("| all | {:.1f} |\n", total / 60);
}

void run(const fs::path& folder, std::span<const std::string> models) {
  svg::LineChart chart{"GPT-2s of growing size on the same tokens", "updates", "perplexity per token, held out", {}};
  for (const std::string& name : models) chart.lines.push_back(curve_of(folder / name, name));
  write_file_atomically(folder / "figure6.svg", svg::to_svg(chart));
  print_results(folder, models);
  print_overlaps(folder);
  print_times(folder);
}

}  // namespace
}  // namespace teratron

int main(int count, char** arguments) {
  try {
    if (count < 3) teratron::throw_user_error("usage: zero_shot_report FOLDER MODEL...");
    teratron::run(arguments[1], std::vector<std::string>(arguments + 2, arguments + count));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}

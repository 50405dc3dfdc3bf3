#include "html/run_record.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <sstream>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/native/folders.h"
#include "options/output.h"
#include "options/toml_parsing.h"
#include "telemetry/checkpoint_progress.h"
#include "telemetry/metrics_reading.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLog = "metrics.jsonl";

std::string text_of(const MetricsLine& line, const char* name) {
  const auto found = line.values.find(name);
  return found != line.values.end() && found->is_string() ? found->get<std::string>() : "";
}

void read_log(const fs::path& file, RunRecord& run) {
  for (const MetricsLine& line : read_metrics(file)) {
    if (line.kind == "sample") {
      run.samples.push_back(
          {.iteration = line.iteration, .prompt = text_of(line, "prompt"), .text = text_of(line, "text")});
    }
    for (const auto& [name, value] : line.values.items()) {
      if (name == "iteration" || !value.is_number()) continue;
      // Kinds of losses have one name in training and in validation.
      const std::string full =
          line.kind == "validation" && !name.starts_with("validation") ? "validation_" + name : name;
      const auto number = value.get<double>();
      if (std::isfinite(number)) run.curves[full].emplace_back(static_cast<double>(line.iteration), number);
    }
  }
}

std::string text_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

void read_settings(const fs::path& file, RunRecord& run) {
  const toml::table table = parse_toml(read_file(file), file.string());
  std::vector<std::pair<std::uint32_t, std::pair<std::string, std::string>>> lines;
  for (const auto& [key, node] : table) {
    lines.push_back({key.source().begin.line, {std::string(key.str()), text_of(node)}});
  }
  if (const toml::array* const paths = table["data_path"].as_array(); paths != nullptr) {
    for (const toml::node& path : *paths) {
      if (const auto* text = path.as_string()) run.data.push_back(from_utf8(text->get()));
    }
  }
  std::ranges::sort(lines);
  for (auto& line : lines) run.settings.push_back(std::move(line.second));
}

// Settings that follow from others unless they are given. A checkpoint records the values that were in effect.
constexpr std::array kFollowing = {
    "vocab_size",        "max_position_embeddings", "ffn_hidden_size", "num_query_groups",
    "global_batch_size", "lr_decay_iters",          "split_order",     "split_seed"};

void take_effective_settings(const fs::path& file, RunRecord& run) {
  const toml::table table = parse_toml(read_file(file), file.string());
  for (auto& [key, value] : run.settings) {
    const toml::node* const effective = table.get(key);
    if (effective == nullptr || (value != "0" && value != "auto")) continue;
    if (std::ranges::find(kFollowing, key) != kFollowing.end()) value = text_of(*effective);
  }
}

void read_checkpoints(RunRecord& run) {
  std::error_code error;
  for (const std::int64_t iteration : iterations_in(run.folder)) {
    const fs::path folder = iteration_folder(run.folder, iteration);
    run.checkpoints.push_back({.iteration = iteration,
                               .bytes = bytes_of_folder(folder),
                               .is_best = fs::equivalent(run.folder / kBestLink, folder, error)});
  }
  if (fs::exists(run.folder / kTrackerFile, error)) run.last = read_checkpoint_info(run.folder);
}

// Runs in folders of a folder, as --seeds and --search of finetune leave them.
std::vector<std::string> runs_below(const fs::path& folder) {
  std::vector<std::string> runs;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at.depth() > 2) at.disable_recursion_pending();
    if (at->path().filename() == kLog) runs.push_back(at->path().parent_path().string());
  }
  std::ranges::sort(runs);
  return runs;
}

[[noreturn]] void throw_no_run(const fs::path& folder) {
  constexpr std::size_t kShown = 8;  // as many as a page takes
  std::vector<std::string> runs = runs_below(folder);
  if (runs.empty()) {
    throw_user_error("'{}' holds no {}; name the folder that a run was saved to (train --save)", folder.string(), kLog);
  }
  const std::size_t more = runs.size() - std::min(runs.size(), kShown);
  runs.resize(runs.size() - more);
  throw_user_error("'{}' holds no {}, but runs below it do; name those: {}{}", folder.string(), kLog,
                   fmt::join(runs, " "), more > 0 ? fmt::format(" and {} more", more) : "");
}

// The last `parts` names of a path.
std::string end_of(const fs::path& path, std::size_t parts) {
  fs::path end;
  for (fs::path rest = path; parts > 0 && rest.has_filename(); --parts, rest = rest.parent_path()) {
    end = end.empty() ? rest.filename() : rest.filename() / end;
  }
  return end.string();
}

}  // namespace

const svg::Points* RunRecord::curve(const std::string& key) const {
  const auto found = curves.find(key);
  return found == curves.end() || found->second.empty() ? nullptr : &found->second;
}

std::optional<double> RunRecord::largest(const std::string& key) const {
  const svg::Points* const points = curve(key);
  if (points == nullptr) return std::nullopt;
  return std::ranges::max_element(*points, {}, &std::pair<double, double>::second)->second;
}

const std::string* RunRecord::setting(const std::string& key) const {
  const auto found = std::ranges::find(settings, key, &std::pair<std::string, std::string>::first);
  return found == settings.end() ? nullptr : &found->second;
}

std::int64_t RunRecord::count(const std::string& key, std::int64_t missing) const {
  const std::string* const text = setting(key);
  std::int64_t value = missing;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

RunRecord read_run(const fs::path& folder) {
  std::error_code missing;
  if (!fs::is_directory(folder, missing)) throw_user_error("there is no folder '{}'", folder.string());
  RunRecord run;
  run.folder = fs::canonical(folder);
  run.name = run.folder.filename().string();
  const fs::path log = folder / kLog, settings = folder / kSettingsFile;
  if (!fs::exists(log, missing)) throw_no_run(folder);
  read_log(log, run);
  if (fs::exists(settings, missing)) read_settings(settings, run);
  read_checkpoints(run);
  if (run.last && run.last->settings) take_effective_settings(*run.last->settings, run);
  return run;
}

void name_apart(std::vector<RunRecord>& runs) {
  for (RunRecord& run : runs) {
    const auto is_alone = [&](std::size_t parts) {
      return std::ranges::count_if(runs, [&](const RunRecord& other) {
               return end_of(other.folder, parts) == end_of(run.folder, parts);
             }) == 1;
    };
    const auto depth = static_cast<std::size_t>(std::distance(run.folder.begin(), run.folder.end()));
    std::size_t parts = 1;
    while (parts < depth && !is_alone(parts)) ++parts;
    run.name = end_of(run.folder, parts);
  }
}

}  // namespace teratron

// teratron diff: the first update, and the tensors, in which two runs or models part.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "runtime/run_comparison.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

struct DiffOptions {
  fs::path a, b, json;
  double tolerance = 0;
  std::int64_t most = 10;
  Faults faults() const;
};

Faults DiffOptions::faults() const {
  Faults faults;
  if (!(tolerance >= 0)) faults.add("{} must be at least 0, not {}", Flag{"tolerance"}, tolerance);
  return faults;
}

FieldList fields_of(DiffOptions& o) {
  FieldList list;
  list.add_positional(
      &o.a, "A",
      "folder that was saved to, one checkpoint in it, a Hugging Face folder, a safetensors file, or a .bin of "
      "torch.save");
  list.add_positional(&o.b, "B", "what A is compared with, of any of these kinds");
  list.add("tolerance", &o.tolerance, "X",
           "numbers of the log are equal within this share of the larger, a tensor if ||A - B|| is at most X ||A||; 0: "
           "bit for bit");
  list.add("most", &o.most, "N", "tensors listed at most").between(0);
  add_json_field(list, o.json);
  return list;
}

std::string log_text(const MetricsComparison& log) {
  if (log.lines == 0) return "the logs have no update in common\n";
  if (!log.first_difference) return fmt::format("updates {} to {} are equal\n", log.first, log.last);
  const MetricDifference& first = *log.first_difference;
  const std::string before = first.iteration > log.first ? ", the first of those in both logs that differs" : "";
  const std::string place = first.kind == "iteration" ? "update" : first.kind + " after update";
  return fmt::format("{} {}{}: {} {} in A, {} in B\n", place, first.iteration, before, first.metric, first.a, first.b);
}

std::string table_of(const TensorComparison& tensors, std::size_t most) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  table.row({"tensor", "values that differ", "largest difference", "relative"});
  for (std::size_t i = 0; i < std::min(most, tensors.parted.size()); ++i) {
    const TensorDifference& tensor = tensors.parted[i];
    table.row({tensor.name, fmt::format("{} of {}", tensor.differing, tensor.values),
               fmt::format("{:.3g}", tensor.largest), fmt::format("{:.3g}", tensor.relative)});
  }
  std::string text = table.text();
  if (tensors.parted.size() > most) text += fmt::format("  and {} more\n", tensors.parted.size() - most);
  return text;
}

void add_names(std::string& text, std::string_view title, const std::vector<std::string>& names, std::size_t most) {
  if (names.empty()) return;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  text += fmt::format("{} ({}): {}{}\n", title, names.size(), fmt::join(shown, ", "),
                      shown.size() < names.size() ? ", .." : "");
}

std::string tensors_text(const RunComparison& difference, std::size_t most) {
  const TensorComparison& tensors = *difference.tensors;
  std::string text;
  if (!difference.equal_checkpoints.empty()) {
    text += fmt::format("checkpoints of update {} are equal\n", fmt::join(difference.equal_checkpoints, ", "));
  }
  const std::string place =
      difference.checkpoint ? fmt::format("checkpoints of update {}: ", *difference.checkpoint) : std::string();
  text += fmt::format("{}{} of {} differ\n", place, tensors.parted.size(), counted(tensors.compared, "tensor"));
  if (!tensors.parted.empty()) text += table_of(tensors, most);
  add_names(text, "of another shape or type", tensors.other_shape, most);
  add_names(text, "only in A", tensors.only_in_a, most);
  add_names(text, "only in B", tensors.only_in_b, most);
  return text;
}

nlohmann::ordered_json json_of(const TensorComparison& tensors) {
  nlohmann::ordered_json json = {{"compared", tensors.compared},
                                 {"only_in_a", tensors.only_in_a},
                                 {"only_in_b", tensors.only_in_b},
                                 {"other_shape", tensors.other_shape},
                                 {"differ", nlohmann::ordered_json::array()}};
  for (const TensorDifference& tensor : tensors.parted) {
    json["differ"].push_back({{"name", tensor.name},
                              {"shape", tensor.shape},
                              {"values", tensor.values},
                              {"differing", tensor.differing},
                              {"first", tensor.first},
                              {"largest", tensor.largest},
                              {"relative", tensor.relative}});
  }
  return json;
}

nlohmann::ordered_json json_of(const RunComparison& difference) {
  nlohmann::ordered_json json = {{"equal", difference.equal()}};
  if (difference.log) {
    nlohmann::ordered_json& log = json["log"] = {{"lines", difference.log->lines},
                                                 {"first", difference.log->first},
                                                 {"last", difference.log->last},
                                                 {"parts_at", nullptr}};
    if (const auto& first = difference.log->first_difference) {
      log["parts_at"] = {{"iteration", first->iteration},
                         {"kind", first->kind},
                         {"metric", first->metric},
                         {"a", first->a},
                         {"b", first->b}};
    }
  }
  if (!difference.tensors) return json;
  json["equal_checkpoints"] = difference.equal_checkpoints;
  if (difference.checkpoint) json["checkpoint"] = *difference.checkpoint;
  json["tensors"] = json_of(*difference.tensors);
  return json;
}

void run(const DiffOptions& options) {
  const RunComparison difference = compare_runs(options.a, options.b, options.tolerance);
  std::string text;
  if (difference.log) text += log_text(*difference.log);
  if (difference.tensors) text += tensors_text(difference, static_cast<std::size_t>(options.most));
  report(options.json, text, json_of(difference));
  if (!difference.equal()) throw_user_error("'{}' and '{}' differ", options.a.string(), options.b.string());
}

}  // namespace

Command diff_command() {
  return make_command<DiffOptions>("diff", "names the first update and the tensors in which two runs or models part",
                                   run);
}

}  // namespace teratron

// teratron bench scaling: the Megatron-LM paper's scaling studies at a size that fits this machine, beside its figures.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "telemetry/line_chart.h"
#include "telemetry/readable.h"
#include "telemetry/text_table.h"
#include "train/scaling_study.h"

namespace teratron {
namespace {

struct Options {
  std::filesystem::path out, json;
  std::int64_t ranks = 4;
  ScalingSettings settings{.cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency())};

  std::vector<std::string> faults() const {
    std::vector<std::string> faults;
    const auto need = [&](const char* flag, std::int64_t value, std::int64_t most) {
      if (value >= 1 && value <= most) return;
      faults.push_back(fmt::format("--{} is {}; it must be at least 1 and at most {}", flag, value, most));
    };
    need("max-ranks", ranks, 16);
    need("seq-length", settings.tokens, 1 << 20);
    need("steps", settings.steps, 1000);
    need("threads", settings.cores, 4096);
    return faults;
  }
};

FieldList fields_of(Options& o) {
  FieldList list;
  list.add("out", &o.out, "DIR", "where scaling.svg goes").required = true;
  list.add("max-ranks", &o.ranks, "N", "largest layout: 1, 2, 4, 8 or 16 ranks");
  list.add("seq-length", &o.settings.tokens, "N", "tokens a sample; the paper's is 1024");
  list.add("steps", &o.settings.steps, "N", "steps measured of each layout; the median counts");
  list.add("threads", &o.settings.cores, "N", "cores to use at most; ranks beyond them take turns");
  add_json_field(list, o.json);
  return list;
}

struct Row {
  ScalingPoint point;
  ScalingMeasurement measured;
  double value;  // percent, or speed-up
};

struct Result {
  ScalingStudy study;
  std::vector<Row> rows;
};

// Machines change their pace: what a point is compared with is measured right before it.
double baseline_flops(ScalingSettings settings) {
  settings.cores = 1;
  return measure_scaling(scaling_baseline(), settings).flops_per_core();
}

Result run_study(const ScalingStudy& study, const ScalingSettings& settings) {
  Result result{.study = study};
  for (const ScalingPoint& point : study.points) {
    fmt::print(stderr, "{}: {} ranks (tensor {} x data {})\n", study.title, point.mesh.ranks(), point.mesh.tensor,
               point.mesh.data);
    const double baseline = study.is_speedup ? 0 : baseline_flops(settings);
    const ScalingMeasurement measured = measure_scaling(point, settings);
    const double first = result.rows.empty() ? measured.seconds : result.rows.front().measured.seconds;
    const double value = study.is_speedup ? first / measured.seconds : 100 * measured.flops_per_core() / baseline;
    result.rows.push_back({point, measured, value});
  }
  return result;
}

std::string readable(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

std::string table_of(const Result& result) {
  const bool speedup = result.study.is_speedup;
  TextTable table(std::vector<Align>(13, Align::kRight));
  table.heading(result.study.title +
                (speedup ? ": times as fast as one rank" : ": percent of one rank's FLOP/s on one core"));
  table.row({"ranks", "tp x dp", "hidden", "heads", "layers", "params", "cores", "ms/step", "GFLOP/s a core", "here",
             "paper", "planned a rank", "measured"});
  for (const Row& row : result.rows) {
    const ScalingPoint& point = row.point;
    const std::string paper_of = result.study.x_label == "ranks" ? fmt::format(" ({} GPUs)", point.paper_x) : "";
    table.row({fmt::format("{}", point.mesh.ranks()), fmt::format("{} x {}", point.mesh.tensor, point.mesh.data),
               fmt::format("{}", point.model.hidden_size), fmt::format("{}", point.model.num_attention_heads),
               fmt::format("{}", point.model.num_layers), readable_count(static_cast<double>(point.model.parameters())),
               fmt::format("{}", row.measured.cores), fmt::format("{:.0f}", row.measured.seconds * 1e3),
               fmt::format("{:.1f}", row.measured.flops_per_core() / 1e9),
               speedup ? fmt::format("{:.2f}", row.value) : fmt::format("{:.0f} %", row.value),
               (speedup ? fmt::format("{:.2f}", point.paper_y) : fmt::format("{:.0f} %", point.paper_y)) + paper_of,
               readable(row.measured.planned_bytes), readable(row.measured.peak_bytes)});
  }
  return table.text();
}

Chart chart_of(const Result& result) {
  const bool by_heads = result.study.x_label == "heads";
  ChartLine here{.name = "here"}, paper{.name = "the paper's GPUs", .dashed = true};
  for (const Row& row : result.rows) {
    const double x = static_cast<double>(by_heads ? row.point.model.num_attention_heads : row.point.mesh.ranks());
    here.x.push_back(x);
    here.y.push_back(row.value);
    paper.x.push_back(x);
    paper.y.push_back(row.point.paper_y);
  }
  return {.title = result.study.title,
          .x_label = result.study.x_label,
          .y_label = result.study.is_speedup ? "speed-up" : "% a core",
          .lines = {here, paper}};
}

nlohmann::ordered_json json_of(const Result& result) {
  nlohmann::ordered_json json = {{"title", result.study.title}};
  for (const Row& row : result.rows) {
    json["points"].push_back({{"tensor", row.point.mesh.tensor},
                              {"data", row.point.mesh.data},
                              {"cores", row.measured.cores},
                              {"hidden_size", row.point.model.hidden_size},
                              {"num_attention_heads", row.point.model.num_attention_heads},
                              {"num_layers", row.point.model.num_layers},
                              {"parameters", row.point.model.parameters()},
                              {"batch", row.point.batch},
                              {"seconds", row.measured.seconds},
                              {"flops_per_second_per_core", row.measured.flops_per_core()},
                              {result.study.is_speedup ? "speedup" : "percent", row.value},
                              {"paper", row.point.paper_y},
                              {"planned_bytes", row.measured.planned_bytes},
                              {"peak_bytes", row.measured.peak_bytes}});
  }
  return json;
}

void run(const Options& options) {
  make_folders(options.out);
  std::string text = fmt::format("{} of {} cores, sequences of {} tokens\n\n", options.settings.cores,
                                 std::thread::hardware_concurrency(), options.settings.tokens);
  std::vector<Chart> charts;
  nlohmann::ordered_json json = {{"cores", options.settings.cores}, {"seq_length", options.settings.tokens}};
  for (const ScalingStudy& study : scaling_studies(options.ranks)) {
    const Result result = run_study(study, options.settings);
    text += table_of(result) + "\n";
    charts.push_back(chart_of(result));
    json["studies"].push_back(json_of(result));
  }
  const std::filesystem::path picture = options.out / "scaling.svg";
  write_file_atomically(picture, svg_of(charts));
  report(options.json, text + fmt::format("the plots: '{}'\n", picture.string()), json.dump());
}

}  // namespace

Command bench_scaling_command() {
  return make_command("bench scaling", "runs the Megatron-LM paper's scaling studies on this machine", run);
}

}  // namespace teratron

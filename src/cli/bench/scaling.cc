// teratron bench scaling: the Megatron-LM paper's scaling studies on this machine, next to the paper's own figures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/median.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/show_steps.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "report/bar_chart.h"
#include "studies/scaling_study.h"

namespace teratron {
namespace {

struct BenchScalingOptions {
  ScalingSizes sizes;
  std::int64_t updates = 2, rounds = 2, cores = 0;
  std::filesystem::path out, json;
  bool overwrite = false;
};

FieldList fields_of(BenchScalingOptions& o) {
  FieldList list;
  list.add("max-tensor-ranks", &o.sizes.most_tensor_ranks, "T",
           "the paper's rows with more tensor-parallel ranks are left out")
      .between(1, 8);
  list.add("copies", &o.sizes.copies, "D", "copies of the model where the paper has 64").between(1, 64);
  list.add("batch-size", &o.sizes.batch, "N", "sequences an update of each copy; the paper's is 8").between(1, 4096);
  list.add("head-size-divisor", &o.sizes.head_size_divisor, "N", "heads are 96 / N wide").between(1, 96);
  list.add("layers-divisor", &o.sizes.layers_divisor, "N", "models have 40 / N to 72 / N layers").between(1, 72);
  list.add("vocab-divisor", &o.sizes.vocab_divisor, "N", "the vocabulary has 51200 / N entries").between(1, 51200);
  list.add("sequence-divisor", &o.sizes.sequence_divisor, "N", "sequences have 1024 / N tokens").between(1, 128);
  list.add("sequence-parallel", &o.sizes.sequence_parallel, "", "as in train");
  list.add("updates", &o.updates, "N", "timed of each row in a round").between(1, 1000);
  list.add("rounds", &o.rounds, "N", "how often the rows take turns").between(1, 1000);
  list.add("cores", &o.cores, "N", "cores to use; 0: all").between(0, 4096);
  list.add("out", &o.out, "DIR", "also write scaling.svg and scaling.json there");
  add_overwrite_field(list, o.overwrite);
  add_json_field(list, o.json);
  return list;
}

struct Measured {
  ScalingRow row;
  ScalingResult result;
  int cores = 1;      // that its ranks had
  double rate = 0;    // model FLOP/s
  double figure = 0;  // what the paper's figure is compared with
  bool is_speedup() const { return row.study == "strong"; }
};

std::vector<Measured> measure_all(const BenchScalingOptions& options, int cores) {
  std::vector<Measured> all;
  for (ScalingRow& row : scaling_rows(options.sizes)) {
    all.push_back({.row = std::move(row)});
    all.back().cores = std::min(cores, all.back().row.mesh.ranks());
  }
  const auto show = show_steps("measuring the paper's rows");
  const int steps = static_cast<int>(options.rounds) * static_cast<int>(all.size());
  int done = 0;
  show(0, steps);
  for (std::int64_t round = 0; round < options.rounds; ++round) {
    for (Measured& m : all) {
      ScalingResult result = measure(m.row, options.sizes, static_cast<int>(options.updates), cores);
      result.seconds.insert(result.seconds.end(), m.result.seconds.begin(), m.result.seconds.end());
      m.result = std::move(result);
      show(++done, steps);
    }
  }
  for (Measured& m : all) {
    m.rate = m.result.flops / median(m.result.seconds);
    const double against_one = m.rate / all.front().rate;
    m.figure = m.is_speedup() ? against_one : against_one / m.cores;
  }
  return all;
}

std::string text_of(const std::vector<Measured>& all) {
  const Align left = Align::kLeft, right = Align::kRight;
  TextTable table({left, left, right, right, right, right, right, right, right, right});
  table.row({"layers/hidden/heads", "ranks (tp x dp)", "cores", "GFLOP/s", "a core", "here", "paper", "the paper's row",
             "planned MB", "measured MB"});
  std::string study;
  for (const Measured& m : all) {
    if (m.row.study != study) {
      study = m.row.study;
      table.heading(study + (m.is_speedup() ? " scaling: speed-up over one rank"
                                            : ": speed a core against one rank on one core"));
    }
    const ModelConfig& model = m.row.model;
    table.row({fmt::format("{}/{}/{}", model.num_layers, model.hidden_size, model.num_attention_heads),
               fmt::format("{} x {}", m.row.mesh.tensor, m.row.mesh.data), fmt::format("{}", m.cores),
               fmt::format("{:.1f}", m.rate / 1e9), fmt::format("{:.1f}", m.rate / 1e9 / m.cores),
               fmt::format("{:.2f}", m.figure), fmt::format("{:.2f}", m.row.paper), m.row.paper_row,
               fmt::format("{:.0f}", static_cast<double>(m.result.planned_bytes) / 1e6),
               fmt::format("{:.0f}", static_cast<double>(m.result.measured_bytes) / 1e6)});
  }
  return table.text();
}

nlohmann::json json_of(const std::vector<Measured>& all) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Measured& m : all) {
    rows.push_back({{"study", m.row.study},
                    {"layers", m.row.model.num_layers},
                    {"hidden_size", m.row.model.hidden_size},
                    {"heads", m.row.model.num_attention_heads},
                    {"tensor_parallel", m.row.mesh.tensor},
                    {"data_parallel", m.row.mesh.data},
                    {"cores", m.cores},
                    {"seconds", m.result.seconds},
                    {"model_flops", m.result.flops},
                    {m.is_speedup() ? "speedup" : "efficiency", m.figure},
                    {"paper", m.row.paper},
                    {"paper_row", m.row.paper_row},
                    {"planned_bytes", m.result.planned_bytes},
                    {"measured_bytes", m.result.measured_bytes}});
  }
  return rows;
}

std::vector<svg::BarChart> charts_of(const std::vector<Measured>& all) {
  std::vector<svg::BarChart> charts;
  for (const Measured& m : all) {
    if (charts.empty() || charts.back().title != m.row.study) {
      charts.push_back({.title = m.row.study,
                        .axis = m.is_speedup() ? "speed-up over one rank" : "efficiency a core",
                        .series = {"here", "paper"},
                        .groups = {}});
    }
    charts.back().groups.push_back({m.row.paper_row, {m.figure, m.row.paper}});
  }
  return charts;
}

void run(const BenchScalingOptions& options) {
  const int cores = options.cores > 0 ? static_cast<int>(options.cores)
                                      : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  if (!options.out.empty()) {
    require_free(std::array{options.out / "scaling.svg", options.out / "scaling.json"}, options.overwrite);
  }
  const std::vector<Measured> all = measure_all(options, cores);
  const std::string json = json_of(all).dump();
  if (!options.out.empty()) {
    make_folders(options.out);
    write_file_atomically(options.out / "scaling.svg", to_svg(charts_of(all)));
    write_file_atomically(options.out / "scaling.json", json + "\n");
  }
  report(options.json,
         text_of(all) + "Ranks beyond the cores share them. Measured memory is the process's peak over its ranks.\n",
         json);
}

}  // namespace

Command bench_scaling_command() {
  return make_command<BenchScalingOptions>("bench scaling",
                                           "runs the Megatron-LM paper's scaling studies on this machine", run);
}

}  // namespace teratron

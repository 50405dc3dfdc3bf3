// TeraPipe (arXiv 2102.07988) on p3.16xlarge: its figures, each from the iterations of both programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cluster/cluster_file.h"
#include "pipeline/token_slices.h"
#include "plan/costs/layer_costs.h"
#include "reproduction/judgement.h"
#include "reproduction/paper.h"
#include "reproduction/terapipe_iteration.h"

namespace teratron::plan {
namespace terapipe {
namespace {

constexpr std::int64_t kFlatTokens = 256;  // Figure 3: up to them a layer's forward takes the same time

using Lengths = std::vector<std::int64_t>;

// Times of a setting by the paper's program or by Teratron.
class Times {
 public:
  Times(std::unique_ptr<Iteration> iteration, std::int64_t tokens)
      : iteration_(std::move(iteration)),
        tokens_(tokens),
        slices_(iteration_->best_slices()),
        sliced_(iteration_->seconds(slices_)) {}

  const Lengths& slices() const { return slices_; }  // of the program's own slicer
  double of(const Lengths& lengths) const { return iteration_->seconds(lengths); }
  double sliced() const { return sliced_; }
  void take_slices(const Lengths& lengths) { sliced_ = of(lengths); }

  double even(std::int64_t slices) {
    const auto [found, is_new] = even_.try_emplace(slices);
    if (is_new) found->second = of(pipeline::even_slices(tokens_, static_cast<int>(slices)));
    return found->second;
  }
  double whole() { return even(1); }
  double best_even(std::int64_t most) {  // of 1, 2, 4, .. slices
    double best = whole();
    for (std::int64_t slices = 2; slices <= most; slices *= 2) best = std::min(best, even(slices));
    return best;
  }

 private:
  std::unique_ptr<Iteration> iteration_;
  std::int64_t tokens_;
  Lengths slices_;
  double sliced_ = 0;
  std::map<std::int64_t, double> even_;
};

struct SettingTimes {
  Times papers;
  std::optional<Times> teratrons;  // none: it means nothing for Teratron
};

Lengths published_slices(const TrainConfig& setting) { return comma_separated(setting.pipeline.token_slices).value(); }

bool cuts_batches(const TrainConfig& setting) { return setting.batch.micro_batch_size > 1; }

TrainConfig one_at_a_time(TrainConfig setting) {
  setting.batch.micro_batch_size = 1;
  return setting;
}

// Slices are those of the program's own slicer, but the paper's where it cuts several sequences together. Teratron
// takes them one at a time.
SettingTimes times_of(const PaperCell& cell, const std::string& cluster) {
  const std::int64_t tokens = cell.run.model.seq_length;
  SettingTimes times{.papers = Times(papers_iteration(cell.run, cluster), tokens)};
  if (cuts_batches(cell.run)) times.papers.take_slices(published_slices(cell.run));
  if (cell.teratrons_run)
    times.teratrons.emplace(teratrons_iteration(one_at_a_time(*cell.teratrons_run), cluster), tokens);
  return times;
}

// The forward of a layer on one GPU, in milliseconds.
double layer_milliseconds(const TrainConfig& setting, const Cluster& device, std::int64_t tokens) {
  return ModelCosts(setting.model.config, {}, device).layer({.tokens = tokens}).forward;
}

double value_of(const PaperCell& cell, Times& times) {
  switch (cell.value) {
    case CellValue::kWhole: return times.whole();
    case CellValue::kSliced: return times.sliced();
    case CellValue::kSpeedUp: return times.whole() / times.sliced();
    case CellValue::kSlices: return static_cast<double>(times.slices().size());
    case CellValue::kEven: return times.even(cell.number);
    case CellValue::kBestEven: return times.best_even(cell.number) / times.sliced();
    case CellValue::kOfUnit:
    case CellValue::kLayer: break;
  }
  throw InternalError("a cell of an iteration");
}

// Note that sequences are not taken one at a time, and what difference that makes.
std::string note_of(const TrainConfig& setting, const std::string& cluster) {
  Times alone(papers_iteration(one_at_a_time(setting), cluster), setting.model.seq_length);
  return fmt::format(
      "{} sequences at a time in the published slices, a number chosen by both times (the paper's program cuts batches "
      "too; its line of this setting was not at hand); one at a time {:.4g} s, and {:.4g} s in our slices",
      setting.batch.micro_batch_size, alone.whole(), alone.sliced());
}

// Algorithm 1 evens out the time of slices, so their lengths say what context costs.
std::string context_costs_less(const TrainConfig& setting, const Times& times) {
  const auto [least, most] = std::ranges::minmax(times.slices());
  const auto [published_least, published_most] = std::ranges::minmax(published_slices(setting));
  return fmt::format(
      "slices that take equally long are of {} to {} tokens by this model and were of {} to {} there, so that context "
      "costs less here and even slices lose less",
      least, most, published_least, published_most);
}

class Figures {
 public:
  explicit Figures(Paper paper) : paper_(std::move(paper)), result_{.title = paper_.title} {}

  Reproduction reproduce() {
    for (const PaperCell& cell : paper_.cells) cell.value == CellValue::kLayer ? add_layer(cell) : add(cell);
    add_layer_curve();
    for (const PaperCell& cell : paper_.cells) {
      if (cell.value == CellValue::kBestEven) add_even_curve(cell);
    }
    result_.ranking = ranked_pairs();
    const Cluster cluster = find_cluster(paper_.cluster, 16);
    result_.fitted = fitted_constants(cluster);
    const LinkLevel& network = cluster.links[1];
    result_.fitted.push_back({"bandwidth of " + network.name, network.bandwidth, network.from});
    return std::move(result_);
  }

 private:
  SettingTimes& times(const PaperCell& cell) {
    const std::string key = to_toml(cell.run) + (cell.teratrons_run ? to_toml(*cell.teratrons_run) : "");
    auto found = times_.find(key);
    if (found == times_.end()) found = times_.emplace(key, times_of(cell, paper_.cluster)).first;
    return found->second;
  }

  void add(const PaperCell& published) {
    SettingTimes& both = times(published);
    ReproducedCell cell = published.cell;
    cell.ours = value_of(published, both.papers);
    if (both.teratrons) cell.teratron = value_of(published, *both.teratrons);
    if (published.value == CellValue::kWhole && cuts_batches(published.run))
      cell.assumed = note_of(published.run, paper_.cluster);
    if (published.value == CellValue::kBestEven && !is_met(cell))
      cell.cause = context_costs_less(published.run, both.papers);
    if (published.value == CellValue::kSlices) {
      const SlicingPair pair = slicing_of(published, both.papers);
      cell.cause = fmt::format("by this model an iteration takes {:+.1f} % with the published slices",
                               100 * (pair.seconds_of_published / pair.seconds_of_ours - 1));
      result_.slicings.push_back(pair);
    }
    result_.cells.push_back(std::move(cell));
  }

  static SlicingPair slicing_of(const PaperCell& cell, const Times& times) {
    const Lengths published = published_slices(cell.run);
    return {.name = cell.cell.name,
            .source = cell.cell.source,
            .published = published,
            .ours = times.slices(),
            .seconds_of_published = times.of(published),
            .seconds_of_ours = times.of(times.slices())};
  }

  void add_layer(const PaperCell& published) {
    const auto beside_flat = [&](const TrainConfig& run, const Cluster& device) {
      return layer_milliseconds(run, device, published.number) / layer_milliseconds(run, device, kFlatTokens);
    };
    ReproducedCell cell = published.cell;
    cell.ours = beside_flat(published.run, papers_device_);
    if (published.teratrons_run) cell.teratron = beside_flat(*published.teratrons_run, teratrons_device_);
    result_.cells.push_back(std::move(cell));
  }

  void add_layer_curve() {
    const PaperCell& cell = paper_.cells.front();
    Curve curve{.title = "Figure 3, forward of a layer of the 1B on one V100",
                .x_axis = "tokens",
                .unit = "ms",
                .published = fmt::format("flat up to {} tokens (section 3.2)", kFlatTokens),
                .points = {}};
    for (std::int64_t tokens = 1; tokens <= cell.run.model.seq_length; tokens *= 2) {
      curve.points.push_back(
          {.x = fmt::format("{}", tokens), .ours = layer_milliseconds(cell.run, papers_device_, tokens)});
      if (cell.teratrons_run)
        curve.points.back().teratron = layer_milliseconds(*cell.teratrons_run, teratrons_device_, tokens);
    }
    result_.curves.push_back(std::move(curve));
  }

  // The curve of even slices in the relation's setting.
  void add_even_curve(const PaperCell& relation) {
    const std::string& name = relation.cell.name;
    SettingTimes& both = times(relation);
    Curve curve{.title = "Figure 6, even slices in " + name.substr(0, name.find(',')),
                .x_axis = "slices",
                .unit = "s",
                .published = fmt::format("the best even slices take {:.2f} times as long as the slicer's (section 4.2)",
                                         relation.cell.published),
                .points = {}};
    const auto add = [&](std::string x, const auto& seconds) {
      curve.points.push_back({.x = std::move(x), .ours = seconds(both.papers)});
      if (both.teratrons) curve.points.back().teratron = seconds(*both.teratrons);
    };
    for (std::int64_t slices = 1; slices <= relation.number; slices *= 2)
      add(fmt::format("{}", slices), [&](Times& one) { return one.even(slices); });
    add("slicer", [](const Times& one) { return one.sliced(); });
    result_.curves.push_back(std::move(curve));
  }

  // Seconds a sequence of Figure 5.
  RankedPairs ranked_pairs() const {
    struct Plan {
      std::string name, preset;
      double published, ours;  // seconds a sequence
    };
    std::vector<Plan> plans;
    const auto add = [&](std::size_t i, const char* how) {
      const ReproducedCell& cell = result_.cells[i];
      const TrainConfig& run = paper_.cells[i].run;
      const auto sequences = static_cast<double>(run.largest_batch());
      plans.push_back(
          {fmt::format("{} {}", cell.name, how), run.model.preset, cell.published / sequences, cell.ours / sequences});
    };
    for (std::size_t i = 0; i < paper_.cells.size(); ++i) {
      if (paper_.cells[i].cell.table != "Figure 5, without slices") continue;
      add(i, "without slices");
      const auto sliced = std::ranges::find_if(paper_.cells, [&](const PaperCell& cell) {
        return cell.cell.table == "Figure 5, with slices" && cell.cell.name == paper_.cells[i].cell.name;
      });
      if (sliced != paper_.cells.end()) add(static_cast<std::size_t>(sliced - paper_.cells.begin()), "with slices");
    }
    RankedPairs result;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      for (std::size_t j = i + 1; j < plans.size(); ++j) {
        const Plan &a = plans[i], &b = plans[j];
        const bool is_near = std::abs(a.published - b.published) <= 0.05 * std::min(a.published, b.published);
        if (a.preset != b.preset || is_near) continue;
        ++result.pairs;
        if ((a.published < b.published) != (a.ours < b.ours)) result.wrong.push_back(a.name + " / " + b.name);
      }
    }
    return result;
  }

  const Paper paper_;
  const Cluster papers_device_ = find_cluster(paper_.cluster, 1), teratrons_device_ = run_by_teratron(papers_device_);
  std::map<std::string, SettingTimes> times_;  // by all that is set: equal settings are simulated once
  Reproduction result_;
};

}  // namespace
}  // namespace terapipe

Reproduction reproduce_terapipe(std::string_view name) { return reproduce_terapipe(read_paper(name)); }

Reproduction reproduce_terapipe(Paper paper) { return terapipe::Figures(std::move(paper)).reproduce(); }

}  // namespace teratron::plan

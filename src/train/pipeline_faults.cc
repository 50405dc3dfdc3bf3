#include "train/pipeline_faults.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "base/error.h"
#include "pipeline/token_slices.h"
#include "train/pipeline_plan.h"

namespace teratron {
namespace {

using pipeline::ScheduleKind;

constexpr std::int64_t kMostVirtualStages = 1000;
constexpr double kMostActions = 4'000'000;  // of a schedule, which every rank holds

constexpr const char* kStages = "--pipeline-model-parallel-size";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// "below or above", of multiples of `unit` next to a value that is none.
std::string nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  return below > 0 ? fmt::format("{} and {}", below, below + unit) : fmt::format("{}", unit);
}

class PipelineFaults {
 public:
  explicit PipelineFaults(const TrainConfig& config) : c_(config), kind_(schedule_kind(config)) {}

  std::vector<std::string> find() {
    need_between(kStages, c_.pipeline_parallel, kMostLayers);
    need_between("--virtual-stages", c_.virtual_stages, kMostVirtualStages);
    const bool stages_make_sense = faults_.empty();
    const std::optional<pipeline::TokenSlices> slices = parsed_slices();
    if (slices) check_slices(*slices);
    if (!stages_make_sense) return std::move(faults_);
    check_kind(!slices ? 1 : slices->automatic ? 2 : slices->count);  // several, as far as schedules are asked
    if (c_.model.num_layers >= 1 && c_.model.num_layers <= kMostLayers) check_layers();
    if (slices && !slices->automatic) check_size(slices->count);
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    faults_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  void need_between(const char* flag, std::int64_t value, std::int64_t most) {
    if (value < 1) add("{} is {}; it must be at least 1", flag, value);
    if (value > most) add("{} is {}; it must be at most {}", flag, value, most);
  }
  std::int64_t cells() const { return c_.pipeline_parallel * c_.virtual_stages; }

  // What schedules themselves say, with the flags of training.
  void check_kind(int slices) {
    if (c_.virtual_stages > 1 && c_.pipeline_parallel == 1) {
      add("--virtual-stages is {}, but there is one stage; give {} 2 or more, or leave it out", c_.virtual_stages,
          kStages);
    }
    const auto stages = static_cast<int>(c_.pipeline_parallel);
    for (const std::string& fault :
         pipeline::size_faults(kind_, {.stages = stages,
                                      .micro_batches = stages,
                                      .slices = slices,
                                      .virtual_stages = static_cast<int>(c_.virtual_stages)})) {
      const std::string named =
          replaced(fault, fmt::format("--slices is {}", slices), fmt::format("--token-slices is {}", c_.token_slices));
      faults_.push_back(replaced(replaced(named, "--stages", kStages), "; choose ", "; choose --schedule "));
    }
  }

  void check_layers() {
    const std::int64_t layers = c_.model.num_layers;
    if (c_.pipeline_parallel > layers) {
      add("{} is {}, but there are {} layers (--num-layers) and every stage needs one; the most that works is {}",
          kStages, c_.pipeline_parallel, layers, layers);
    } else if (cells() > layers) {
      add("--virtual-stages is {}, which makes {} cells of {} {}, but there are {} layers (--num-layers) and every "
          "cell needs one; the most that works is {}",
          c_.virtual_stages, cells(), kStages, c_.pipeline_parallel, layers, layers / c_.pipeline_parallel);
    } else if (!c_.pipeline_layout.empty()) {
      check_layout();
    } else if (layers % cells() != 0) {
      add("--num-layers {} cannot be shared alike by the {}; nearest that can: {}; or give --pipeline-layout {}",
          layers, cells_text(), nearest_multiples(layers, cells()), fmt::join(cell_layers(c_), ","));
    }
  }

  std::string cells_text() const {
    const std::string stages = fmt::format("{} stages of {}", c_.pipeline_parallel, kStages);
    if (c_.virtual_stages == 1) return stages;
    return fmt::format("{} cells ({} of --virtual-stages on each of {})", cells(), c_.virtual_stages, stages);
  }

  void check_layout() {
    const std::string& given = c_.pipeline_layout;
    const std::optional<std::vector<std::int64_t>> layout = comma_separated(given);
    TrainConfig even = c_;
    even.pipeline_layout.clear();
    const std::string offer = fmt::format("such as {}", fmt::join(cell_layers(even), ","));
    if (!layout) return add("--pipeline-layout is '{}'; it must be the layers of each cell, {}", given, offer);
    if (static_cast<std::int64_t>(layout->size()) != cells()) {
      return add("--pipeline-layout {} has {} cell{}; {} are needed for the {}, {}", given, layout->size(),
                 layout->size() == 1 ? "" : "s", cells(), cells_text(), offer);
    }
    std::int64_t sum = 0;
    for (std::size_t cell = 0; cell < layout->size(); ++cell) {
      const std::int64_t layers = (*layout)[cell];
      if (layers < 1 || layers > kMostLayers) {
        return add("--pipeline-layout {} gives cell {} {} layers; every cell needs 1 or more, {}", given, cell, layers,
                   offer);
      }
      sum += layers;
    }
    if (sum != c_.model.num_layers) {
      add("--pipeline-layout {} adds up to {} layers, not to the {} of --num-layers; give one that does, {}", given,
          sum, c_.model.num_layers, offer);
    }
  }

  // Nothing where sequences run whole, or where what was given says nothing.
  std::optional<pipeline::TokenSlices> parsed_slices() {
    const std::string& given = c_.token_slices;
    if (given.empty()) return std::nullopt;
    // A number alone might be meant as a slice's length.
    if (given.find_first_not_of("0123456789") == std::string::npos) {
      add("--token-slices is {0}; give the lengths of all slices, separated by commas, or uniform:{0} for {0} slices",
          given);
      return std::nullopt;
    }
    try {
      return pipeline::parse_token_slices("--token-slices", given);
    } catch (const UserError& error) {
      faults_.emplace_back(error.what());
      return std::nullopt;
    }
  }

  void check_slices(const pipeline::TokenSlices& slices) {
    const bool sequence_parallel = c_.sequence_parallel && c_.tensor_parallel > 1;
    if (sequence_parallel && c_.micro_batch_size > 1 && (slices.automatic || slices.count > 1)) {
      add("--sequence-parallel with --token-slices takes one sequence at a time, but --micro-batch-size is {}; give 1",
          c_.micro_batch_size);
    }
    if (slices.automatic || c_.seq_length < 1) return;
    const std::int64_t unit = sequence_parallel ? c_.tensor_parallel : 1;
    if (slices.lengths.empty()) return check_count(slices.count, unit);
    const std::int64_t sum = std::accumulate(slices.lengths.begin(), slices.lengths.end(), std::int64_t{0});
    if (sum != c_.seq_length) {
      add("--token-slices {} adds up to {} tokens, {} {} than --seq-length {}; change one of them", c_.token_slices,
          sum, std::abs(sum - c_.seq_length), sum > c_.seq_length ? "more" : "fewer", c_.seq_length);
    }
    for (const std::int64_t length : slices.lengths) {
      if (length % unit == 0) continue;
      return add(
          "--token-slices {} has a slice of {} tokens, which --sequence-parallel cannot share out over the {} "
          "ranks of --tensor-model-parallel-size; nearest that it can: {}",
          c_.token_slices, length, unit, nearest_multiples(length, unit));
    }
  }

  void check_count(std::int64_t count, std::int64_t unit) {
    const std::int64_t most = c_.seq_length / unit;
    if (count <= most || most == 0) return;
    add("--token-slices {} is more slices than --seq-length {} has {}; the most that works is uniform:{}",
        c_.token_slices, c_.seq_length,
        unit > 1 ? fmt::format("runs of {} tokens, one for each rank of --sequence-parallel", unit) : "tokens", most);
  }

  // A list of actions that would not fit is told rather than made.
  void check_size(std::int64_t slices) {
    if (c_.micro_batch_size < 1 || c_.global_batch_size < 0 || c_.data_parallel < 1) return;
    const double samples = static_cast<double>(c_.global_batch_size) / static_cast<double>(c_.data_parallel);
    const double micro_batches = std::max(1.0, samples / static_cast<double>(c_.micro_batch_size));
    const double actions = 3 * micro_batches * static_cast<double>(cells() * slices);
    if (actions <= kMostActions) return;
    add("--token-slices {} in {:.0f} micro-batches on {} cells makes a schedule of {:.0f} actions, and {:.0f} are the "
        "most; use fewer slices or a larger --micro-batch-size",
        c_.token_slices, std::ceil(micro_batches), cells(), actions, kMostActions);
  }

  const TrainConfig& c_;
  const ScheduleKind kind_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> pipeline_faults(const TrainConfig& config) { return PipelineFaults(config).find(); }

}  // namespace teratron

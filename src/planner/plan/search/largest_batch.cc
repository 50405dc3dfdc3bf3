#include "plan/search/largest_batch.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/error.h"
#include "plan/search/layout_memory.h"
#include "plan/search/memory_wall.h"

namespace teratron::plan {
namespace {

// Memory is linear beyond kFewUnits: the first micro-batches of tiny models may fit into the update's workspace.
constexpr std::int64_t kMostUnits = 1 << 20, kFewUnits = 8;

class BatchSearch {
 public:
  BatchSearch(const PlanRequest& request, std::size_t wanted)
      : request_(request),
        wanted_(wanted),
        room_(static_cast<std::int64_t>(request.cluster.device.memory)),
        memory_(request_.config, request_.context()) {
    request_.fixed.keeps_layers = true;
  }

  SearchResult run() {
    std::vector<Sized> bounded;
    for (Layout& layout : layouts_that_hold_batches()) {
      const std::int64_t most =
          most_units(layout, kMostUnits, [&](std::int64_t units) { return memory_.least(of_units(layout, units)); });
      bounded.push_back({std::move(layout), most});
    }
    std::ranges::stable_sort(bounded, std::greater(), &Sized::sequences);
    for (const Sized& one : bounded) {
      if (one.sequences() <= least_wanted()) break;
      look_at(one);
    }
    finish();
    return std::move(result_);
  }

 private:
  struct Sized {
    Layout layout;
    std::int64_t units = 0;  // micro-batches of a pipeline, or sequences of a single stage's micro-batch
    std::int64_t sequences() const { return units * unit_of(layout); }
  };
  using Shape = std::array<std::int64_t, 3>;

  static std::int64_t unit_of(const Layout& layout) {
    return layout.data * (layout.pipeline > 1 ? layout.micro_batch : 1);
  }

  std::vector<Layout> layouts_that_hold_batches() {
    const FixedLayout& fixed = request_.fixed;
    const std::int64_t size = fixed.micro_batch.value_or(1);
    request_.config.batch.global_batch_size =
        2 * request_.cluster.devices * size;  // of which each copy has two micro-batches
    std::vector<Layout> layouts = layouts_of(request_);
    std::erase_if(layouts, [&](const Layout& layout) {
      const bool is_cut = !layout.slicing.is_whole() && !fixed.slicing;
      const bool holds = layout.pipeline > 1 ? pipeline::traits_of(layout.schedule).holds_all : !fixed.micro_batch;
      return is_cut || !holds || layout.micro_batch != size;
    });
    if (layouts.empty()) {
      throw_user_error(
          "no layout with what is fixed holds its batch at once: a single stage does without --micro-batch-size, "
          "several with --schedule gpipe or terapipe");
    }
    result_.layouts = std::ssize(layouts);
    result_.devices = layouts.front().devices();
    return layouts;
  }

  // The layout of so many units, whose batch the configuration is given.
  Layout of_units(Layout layout, std::int64_t units) {
    request_.config.batch.global_batch_size = units * unit_of(layout);
    if (layout.pipeline == 1) layout.micro_batch = units;
    return layout;
  }

  // The most units that fit, up to `limit`. More units never take less.
  template <class Bytes>
  std::int64_t most_units(const Layout& layout, std::int64_t limit, const Bytes& bytes_of) {
    std::int64_t fitting = 0, too_many = limit + 1;
    for (std::int64_t units = limit; too_many - fitting > 1; units = fitting + (too_many - fitting) / 2) {
      const Layout sized = of_units(layout, units);
      const bool fits = static_cast<const StepSettings&>(with_layout(request_.config, sized)).faults().empty() &&
                        bytes_of(units) <= room_;
      (fits ? fitting : too_many) = units;
    }
    return fitting;
  }

  // Batch of the last wanted layout; smaller ones do not matter.
  std::int64_t least_wanted() const {
    std::vector<std::int64_t> batches;
    for (const auto& [shape, found] : best_) batches.push_back(found.sequences());
    if (batches.size() < wanted_) return 0;
    std::ranges::sort(batches, std::greater());
    return batches[wanted_ - 1];
  }

  // Bytes of a rank of each stage. Beyond a few micro-batches each more adds as much as the one before, and plans of
  // thousands would take seconds.
  const std::vector<std::int64_t>& planned(const Layout& layout, std::int64_t units) {
    std::vector<std::int64_t>& bytes = planned_[{layout, units}];
    if (!bytes.empty()) return bytes;
    if (layout.pipeline == 1 || units <= 2 * kFewUnits) return bytes = memory_.planned(of_units(layout, units));
    const std::vector<std::int64_t>&few = planned(layout, kFewUnits), &twice = planned(layout, 2 * kFewUnits);
    for (std::size_t stage = 0; stage < few.size(); ++stage) {
      bytes.push_back(few[stage] + (twice[stage] - few[stage]) * (units - kFewUnits) / kFewUnits);
    }
    return bytes;
  }

  void look_at(const Sized& bounded) {
    const Layout& layout = bounded.layout;
    Sized& best = best_[{layout.tensor, layout.pipeline, layout.data}];
    if (bounded.sequences() <= best.sequences()) return;
    const auto fullest = [&](std::int64_t units) { return std::ranges::max(planned(layout, units)); };
    const Sized found{layout, most_units(layout, bounded.units, fullest)};
    if (found.sequences() > best.sequences()) best = found;
  }

  void finish() {
    for (auto& [shape, found] : best_) {
      if (found.units == 0 || found.sequences() < least_wanted()) continue;
      const Layout layout = of_units(found.layout, found.units);
      const TrainConfig config = with_layout(request_.config, layout);
      const StepTime time = predict_step(config, request_.cluster, request_.vocab_size);
      ++result_.simulated;
      result_.best.push_back({.layout = layout,
                              .config = config,
                              .memory = planned(found.layout, found.units),
                              .time = time,
                              .parts = parts_of(request_, layout, time)});
    }
    std::ranges::stable_sort(result_.best, [](const PlannedLayout& a, const PlannedLayout& b) {
      if (a.config.batch.global_batch_size != b.config.batch.global_batch_size) {
        return a.config.batch.global_batch_size > b.config.batch.global_batch_size;
      }
      return a.time.seconds < b.time.seconds;
    });
    if (result_.best.size() > wanted_) result_.best.resize(wanted_);
    if (result_.best.empty()) throw_none();
  }

  // Slices of a sequence may fit where a whole one does not.
  [[noreturn]] void throw_none() {
    request_.config.batch.global_batch_size = result_.devices;
    const SearchResult any = search_layouts(request_, 0);
    if (any.best.empty()) throw_too_large(request_, any);
    throw_user_error("no layout holds a single sequence of each copy of the model; what fits holds parts of one: {}",
                     any.best.front().layout.text());
  }

  PlanRequest request_;  // with the batch that is looked at
  const std::size_t wanted_;
  const std::int64_t room_;
  LayoutMemory memory_;
  std::map<Shape, Sized> best_;
  std::map<std::pair<Layout, std::int64_t>, std::vector<std::int64_t>> planned_;
  SearchResult result_;
};

}  // namespace

SearchResult largest_batches(const PlanRequest& request, std::size_t runners_up) {
  return BatchSearch(request, runners_up + 1).run();
}

}  // namespace teratron::plan

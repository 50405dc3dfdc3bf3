#include "plan/search/layout_search.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "plan/search/layer_dealing.h"
#include "plan/search/layout_memory.h"
#include "plan/search/layout_time.h"
#include "plan/search/measured_time.h"
#include "plan/search/recompute_choice.h"

namespace teratron::plan {
namespace {

// Most dealings of one layout's layers that are looked at. With few stages a simulation is cheap, and one layer
// matters.
constexpr std::size_t kMostDealings = 6, kMostOfFewStages = 24;

// Most plans of a stage's memory for choosing recomputation. Later layouts have one kind for all stages.
constexpr std::int64_t kMostPlansOfStages = 400;

std::unique_ptr<LayoutCosts> costs_of(const PlanRequest& request) {
  if (request.profile != nullptr) return std::make_unique<MeasuredTimes>(request.config, *request.profile);
  return std::make_unique<LayoutTimes>(request.config, request.cluster, request.vocab_size, request.fixed.has_mesh());
}

struct Found {
  Layout layout;
  StepTime time;
};

// Key that layouts share if a result has only the fastest of them (SearchResult::best). Other members are 0.
using RivalKey = std::array<std::int64_t, 6>;
RivalKey rivals_of(const Layout& layout, const FixedLayout& fixed) {
  if (fixed.has_mesh()) {
    return {
        0, 0, 0, static_cast<std::int64_t>(layout.schedule), layout.virtual_stages, layout.vocabulary_parallel ? 1 : 0};
  }
  return {layout.tensor, layout.pipeline, layout.data};
}

// The fastest layouts that were found, one of each rivals_of(), and as many as are wanted.
class Fastest {
 public:
  explicit Fastest(std::size_t wanted) : wanted_(wanted) {}

  // Seconds of the last wanted layout; nothing slower matters.
  double limit() const {
    std::vector<double> seconds;
    for (const auto& [rivals, found] : found_) seconds.push_back(found.time.seconds);
    if (seconds.size() < wanted_) return std::numeric_limits<double>::infinity();
    std::ranges::nth_element(seconds, seconds.begin() + static_cast<std::ptrdiff_t>(wanted_ - 1));
    return seconds[wanted_ - 1];
  }
  // Seconds that a layout of these rivals must stay below.
  double limit(const RivalKey& rivals) const {
    const auto rival = found_.find(rivals);
    return rival == found_.end() ? limit() : std::min(limit(), rival->second.time.seconds);
  }
  void take(const RivalKey& rivals, Found found) { found_.insert_or_assign(rivals, std::move(found)); }

  std::vector<Found> fastest_first() const {
    std::vector<Found> all;
    for (const auto& [rivals, one] : found_) all.push_back(one);
    std::ranges::stable_sort(all, {}, [](const Found& one) { return one.time.seconds; });
    if (all.size() > wanted_) all.resize(wanted_);
    return all;
  }

 private:
  const std::size_t wanted_;
  std::map<RivalKey, Found> found_;
};

// The memory of a device, and what layouts take of it.
class Room {
 public:
  Room(const PlanRequest& request, KnownLayouts& known)
      : bytes_(static_cast<std::int64_t>(request.cluster.device.memory)),
        known_(known),
        memory_(request.config, request.context()) {}

  std::int64_t bytes() const { return bytes_; }
  bool holds(std::int64_t bytes) const { return bytes <= bytes_; }
  std::int64_t least(const Layout& layout) const { return memory_.least(layout); }
  std::int64_t least_recomputing(Layout layout) const {  // some part or all
    std::int64_t bytes = least(layout);
    for (const Recompute kind : {Recompute::kSelective, Recompute::kFull}) {
      layout.recompute = kind;
      bytes = std::min(bytes, least(layout));
    }
    return bytes;
  }
  // Planning such a layout's memory is cheaper than simulating layouts that do not fit.
  bool is_nearly_full(const Layout& layout) const { return least(layout) > bytes_ / 5 * 4; }

  // The plan of the fullest stage at an end, each stage made once; of a stage that takes more than `enough`, if one
  // does.
  std::int64_t fullest_end(const Layout& layout, std::int64_t enough) { return planned(layout, enough, kAll).bytes; }
  // Whether all stages fit, or, before the others are planned, the first.
  bool fits(const Layout& layout) { return holds(fullest_end(layout, bytes_)); }
  bool first_stage_fits(const Layout& layout) { return holds(planned(layout, bytes_, 1).bytes); }
  std::vector<std::int64_t> of_stages(const Layout& layout) const { return memory_.planned(layout); }
  std::int64_t plans() const { return plans_; }

 private:
  static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

  const FullestEnd& planned(const Layout& layout, std::int64_t enough, std::size_t stages) {
    FullestEnd& known = known_.fullest[layout];
    if (known.stages == 0) ++plans_;
    if (!known.is_whole) memory_.plan_on(layout, enough, stages, known);
    return known;
  }

  const std::int64_t bytes_;
  KnownLayouts& known_;
  LayoutMemory memory_;
  std::int64_t plans_ = 0;
};

class Search {
 public:
  Search(const PlanRequest& request, std::size_t wanted, KnownLayouts& known)
      : request_(request),
        known_(known),
        chooses_recompute_(request.fixed.has_mesh() && !request.fixed.recompute &&
                           request.config.layout.keep_activations != KeepActivations::kAll),
        room_(request, known),
        times_(costs_of(request)),
        fastest_(wanted) {}

  // Nothing slower than a layout that is known to fit is worth a look.
  void begin_with(const PlannedLayout& one) {
    fastest_.take(rivals_of(one.layout, request_.fixed), {one.layout, one.time});
  }

  SearchResult run() {
    if (known_.least.empty()) look_up_layouts();
    result_.devices = known_.least.front().first.devices();
    for (const auto& [layout, bytes] : known_.least) {
      const bool comes_by_stage = chooses_recompute_ && layout.recompute != Recompute::kNone;
      if (!comes_by_stage) add(layout, bytes);
    }
    while (!queue_.empty() && queue_.top().bound < fastest_.limit()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      look_at(candidate);
    }
    add_best();
    if (result_.best.empty()) find_smallest();
    result_.planned = room_.plans();
    return std::move(result_);
  }

 private:
  struct Candidate {
    double bound = 0;
    std::int64_t number = 0;
    Layout layout;
    bool operator<(const Candidate& other) const {  // of a queue whose top is the greatest
      return bound != other.bound ? bound > other.bound : number > other.number;
    }
  };

  void look_up_layouts() {
    for (Layout& layout : layouts_of(request_)) {
      const std::int64_t bytes = room_.least(layout);
      known_.least.emplace_back(std::move(layout), bytes);
    }
  }

  void add(Layout layout) {
    const std::int64_t bytes = room_.least(layout);
    add(std::move(layout), bytes);
  }

  // `least`: bytes that it takes at least, without more recomputation.
  void add(Layout layout, std::int64_t least) {
    ++result_.layouts;
    const std::int64_t bytes = least_bytes(layout, least);
    if (!room_.holds(bytes)) {
      layout.deals_layers = false;
      if (is_open(layout)) layout.recompute = Recompute::kFull;
      return add_too_large(bytes, std::move(layout));
    }
    const double bound = times_->least(layout);
    queue_.push({bound, number_++, std::move(layout)});
  }

  void add_too_large(std::int64_t bytes, Layout layout) {
    ++result_.too_large;
    too_large_.emplace_back(bytes, std::move(layout));
  }

  // Whether recomputation is chosen stage by stage if the layout does not fit.
  bool is_open(const Layout& layout) const { return chooses_recompute_ && layout.recompute == Recompute::kNone; }

  std::int64_t least_bytes(const Layout& layout, std::int64_t bytes) const {
    return room_.holds(bytes) || !is_open(layout) ? bytes : room_.least_recomputing(layout);
  }

  void look_at(const Candidate& candidate) {
    const Layout& layout = candidate.layout;
    const RivalKey rivals = rivals_of(layout, request_.fixed);
    const double limit = fastest_.limit(rivals);
    if (candidate.bound >= limit) return;
    if (layout.slicing.is_open()) {
      for (Layout& chosen : times_->chosen(layout)) add(std::move(chosen));
      return;
    }
    if (layout.deals_layers) return add_dealings(layout);
    if (!looked_at_.insert(layout).second) return;  // two ways of cutting made the same
    // A layout with chosen recomputation was looked at without it before, and so was its deferred one.
    const bool came_by = chooses_recompute_ && !is_open(layout);
    std::optional<Layout> deferred = came_by ? std::nullopt : deferring(layout, request_.fixed);
    if (deferred) add(std::move(*deferred));
    if (room_.is_nearly_full(layout) && !room_.first_stage_fits(layout)) return add_too_full(layout, limit);
    const StepTime time = times_->step(layout);
    ++result_.simulated;
    if (time.seconds >= limit) return;
    if (!room_.fits(layout)) return add_too_full(layout, limit);
    fastest_.take(rivals, {layout, time});
  }

  // Adds the dealings with the least bounds, and equal numbers of layers.
  void add_dealings(const Layout& layout) {
    std::vector<std::pair<double, Layout>> dealings;
    for (Layout& one : dealt(request_.config, layout)) {
      if (room_.holds(least_bytes(one, room_.least(one))) || one.layers.empty())
        dealings.emplace_back(times_->least(one), std::move(one));
    }
    std::stable_sort(dealings.begin() + 1, dealings.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::size_t most = layout.pipeline <= kFewStages ? kMostOfFewStages : kMostDealings;
    if (dealings.size() > most) dealings.resize(most);
    for (auto& [bound, one] : dealings) add(std::move(one));
  }

  // A layout that does not fit comes again with recomputation.
  void add_too_full(const Layout& layout, double limit) {
    if (is_open(layout)) return add_recomputing(layout, limit);
    add_too_large(room_.fullest_end(layout, room_.bytes()), layout);
  }

  void add_recomputing(Layout layout, double limit) {
    if (plans_of_stages_ >= kMostPlansOfStages) {
      for (const Recompute kind : {Recompute::kSelective, Recompute::kFull}) {
        layout.recompute = kind;
        add(layout);
      }
      return;
    }
    const ChosenRecomputation chosen = choose_recomputation(request_.config, request_.context(), layout,
                                                            {.room = room_.bytes(), .seconds = limit}, *times_);
    plans_of_stages_ += chosen.plans;
    if (!room_.holds(chosen.bytes)) {
      layout.recompute = Recompute::kFull;
      add_too_large(chosen.bytes, std::move(layout));
    } else if (!chosen.is_slow) {
      layout.recompute = chosen.recompute;
      add(std::move(layout));
    }
  }

  void add_best() {
    for (const Found& one : fastest_.fastest_first()) {
      const bool is_best = result_.best.empty();
      std::vector<std::int64_t> memory =
          is_best ? room_.of_stages(one.layout) : std::vector{room_.fullest_end(one.layout, room_.bytes())};
      // With one micro-batch, say, two schedules are one under two names.
      const bool is_known = std::ranges::any_of(result_.best, [&](const PlannedLayout& other) {
        return other.time.seconds == one.time.seconds && std::ranges::max(other.memory) == memory.front();
      });
      if (is_known) continue;
      result_.best.push_back(
          {.layout = one.layout,
           .config = with_layout(request_.config, one.layout),
           .memory = std::move(memory),
           .time = one.time,
           .parts = request_.profile == nullptr ? parts_of(request_, one.layout, one.time) : StepParts{}});
    }
  }

  // Planned in the order of what they take at least, until none can take less.
  void find_smallest() {
    std::ranges::stable_sort(too_large_, {}, &std::pair<std::int64_t, Layout>::first);
    result_.smallest_bytes = std::numeric_limits<std::int64_t>::max();
    for (const auto& [least, layout] : too_large_) {
      if (least >= result_.smallest_bytes) return;
      if (layout.slicing.open == Slicing::Open::kAlike) continue;  // even cuts are among the others
      for (Layout& one : layout.slicing.is_open() ? times_->chosen(layout) : std::vector{layout}) {
        const std::int64_t bytes = room_.fullest_end(one, result_.smallest_bytes - 1);
        if (bytes >= result_.smallest_bytes) continue;
        result_.smallest_bytes = bytes;
        result_.smallest = std::move(one);
      }
    }
  }

  const PlanRequest& request_;
  KnownLayouts& known_;
  const bool chooses_recompute_;  // stage by stage
  Room room_;
  const std::unique_ptr<LayoutCosts> times_;
  std::priority_queue<Candidate> queue_;
  std::int64_t number_ = 0, plans_of_stages_ = 0;
  Fastest fastest_;
  std::set<Layout> looked_at_;
  std::vector<std::pair<std::int64_t, Layout>> too_large_;  // with the bytes that they take at least
  SearchResult result_;
};

}  // namespace

std::vector<Layout> layouts_of(const PlanRequest& request) {
  for (std::int64_t devices = request.cluster.devices; devices >= 1; --devices) {
    std::vector<Layout> layouts = layouts_on(devices, request.config, request.fixed);
    if (!layouts.empty()) return layouts;
  }
  throw NoLayoutError(fmt::format(
      "no layout of up to {} can run this model and batch with what is fixed; leave out flags of layouts, or give more "
      "--devices or another --global-batch-size",
      counted(request.cluster.devices, "device")));
}

SearchResult search_from(const PlanRequest& request, const PlannedLayout& start) {
  KnownLayouts known;
  Search search(request, 1, known);
  search.begin_with(start);
  return search.run();
}

SearchResult search_layouts(const PlanRequest& request, std::size_t runners_up) {
  KnownLayouts known;
  return search_layouts(request, runners_up, known);
}

SearchResult search_layouts(const PlanRequest& request, std::size_t runners_up, KnownLayouts& known) {
  return Search(request, runners_up + 1, known).run();
}

}  // namespace teratron::plan

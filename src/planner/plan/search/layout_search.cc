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

// Dealings of one layout's layers that are looked at. With few stages a simulation is cheap, and one layer much.
constexpr std::size_t kMostDealings = 6, kMostOfFewStages = 24;

// Plans of stages for which recomputation is chosen; layouts whose turn comes after have one kind in all stages.
constexpr std::int64_t kMostPlansOfStages = 400;

std::unique_ptr<LayoutCosts> costs_of(const PlanRequest& request) {
  if (request.profile != nullptr) return std::make_unique<MeasuredTimes>(request.model, *request.profile);
  return std::make_unique<LayoutTimes>(request.model, request.cluster, request.vocab_size, request.fixed.has_mesh());
}

class Search {
 public:
  Search(const PlanRequest& request, std::size_t wanted, KnownLayouts& known)
      : request_(request),
        known_(known),
        wanted_(wanted),
        room_(static_cast<std::int64_t>(request.cluster.device.memory)),
        chooses_recompute_(request.fixed.has_mesh() && !request.fixed.recompute &&
                           request.model.layout.keep_activations != KeepActivations::kAll),
        memory_(request.model, request.context()),
        times_(costs_of(request)) {}

  SearchResult run() {
    if (known_.least.empty()) look_up_layouts();
    result_.devices = known_.least.front().first.devices();
    for (const auto& [layout, bytes] : known_.least) {
      const bool comes_by_stage = chooses_recompute_ && layout.recompute != Recompute::kNone;
      if (!comes_by_stage) add(layout, bytes);
    }
    while (!queue_.empty() && queue_.top().bound < worst_wanted()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      look_at(candidate);
    }
    finish();
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
  struct Found {
    Layout layout;
    StepTime time;
  };

  void look_up_layouts() {
    for (Layout& layout : layouts_of(request_)) {
      const std::int64_t bytes = memory_.least(layout);
      known_.least.emplace_back(std::move(layout), bytes);
    }
  }

  void add(Layout layout) {
    const std::int64_t bytes = memory_.least(layout);
    add(std::move(layout), bytes);
  }

  // `least`: what it takes at least as it is.
  void add(Layout layout, std::int64_t least) {
    ++result_.layouts;
    const std::int64_t bytes = least_bytes(layout, least);
    if (bytes > room_) {
      ++result_.too_large;
      if (deals_layers(layout)) layout.layers.clear();
      if (is_open(layout)) layout.recompute = Recompute::kFull;
      too_large_.emplace_back(bytes, std::move(layout));
      return;
    }
    const double bound = times_->least(layout);
    queue_.push({bound, number_++, std::move(layout)});
  }

  // Whether what the layout makes again is chosen by stage if it does not fit.
  bool is_open(const Layout& layout) const { return chooses_recompute_ && layout.recompute == Recompute::kNone; }

  std::int64_t least_bytes(Layout layout, std::int64_t bytes) const {
    if (bytes <= room_ || !is_open(layout)) return bytes;
    for (const Recompute kind : {Recompute::kSelective, Recompute::kFull}) {
      layout.recompute = kind;
      bytes = std::min(bytes, memory_.least(layout));
    }
    return bytes;
  }

  // The time of the last wanted layout; nothing slower matters.
  double worst_wanted() const {
    std::vector<double> seconds;
    for (const auto& [rivals, found] : best_) seconds.push_back(found.time.seconds);
    if (seconds.size() < wanted_) return std::numeric_limits<double>::infinity();
    std::ranges::nth_element(seconds, seconds.begin() + static_cast<std::ptrdiff_t>(wanted_ - 1));
    return seconds[wanted_ - 1];
  }

  void look_at(const Candidate& candidate) {
    const Layout& layout = candidate.layout;
    const RivalKey rivals = rivals_of(layout, request_.fixed);
    const auto best = best_.find(rivals);
    const double limit = std::min(
        worst_wanted(), best == best_.end() ? std::numeric_limits<double>::infinity() : best->second.time.seconds);
    if (candidate.bound >= limit) return;
    if (is_to_be_chosen(layout)) {
      for (Layout& chosen : times_->chosen(layout)) add(std::move(chosen));
      return;
    }
    if (deals_layers(layout)) return add_dealings(layout);
    if (!looked_at_.insert(layout).second) return;  // cut so in two ways
    // One with what its stages make again has come by without, and so has its deferred one.
    const bool came_by = chooses_recompute_ && !is_open(layout);
    std::optional<Layout> deferred = came_by ? std::nullopt : deferring(layout, request_.fixed);
    if (deferred) add(std::move(*deferred));
    // Where memory is nearly full, the plan is cheaper than simulations of what will not fit.
    const bool is_close = memory_.least(layout) > room_ / 5 * 4;
    if (is_close && !fits(layout, limit)) return;
    const StepTime time = times_->step(layout);
    ++result_.simulated;
    if (time.seconds >= limit || (!is_close && !fits(layout, limit))) return;
    best_.insert_or_assign(rivals, Found{layout, time});
  }

  // Those with the least bounds, and equal numbers of layers.
  void add_dealings(const Layout& layout) {
    std::vector<std::pair<double, Layout>> dealings;
    for (Layout& one : dealt(request_.model, layout)) {
      if (least_bytes(one, memory_.least(one)) <= room_ || one.layers.empty())
        dealings.emplace_back(times_->least(one), std::move(one));
    }
    std::stable_sort(dealings.begin() + 1, dealings.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    const std::size_t most = layout.pipeline <= kFewStages ? kMostOfFewStages : kMostDealings;
    if (dealings.size() > most) dealings.resize(most);
    for (auto& [bound, one] : dealings) add(std::move(one));
  }

  std::int64_t fullest_end(const Layout& layout) {
    if (const auto known = known_.fullest.find(layout); known != known_.fullest.end()) return known->second;
    ++result_.planned;
    return known_.fullest[layout] = memory_.fullest_end(layout);
  }

  // One that does not fit comes again with what its stages have to make again.
  bool fits(const Layout& layout, double limit) {
    const std::int64_t bytes = fullest_end(layout);
    if (bytes <= room_) return true;
    if (is_open(layout)) {
      add_recomputing(layout, limit);
    } else {
      ++result_.too_large;
      too_large_.emplace_back(bytes, layout);
    }
    return false;
  }

  void add_recomputing(Layout layout, double limit) {
    if (plans_of_stages_ >= kMostPlansOfStages) {
      for (const Recompute kind : {Recompute::kSelective, Recompute::kFull}) {
        layout.recompute = kind;
        add(layout);
      }
      return;
    }
    const ChosenRecomputation chosen =
        choose_recomputation(request_.model, request_.context(), layout, {.room = room_, .seconds = limit}, *times_);
    plans_of_stages_ += chosen.plans;
    if (chosen.bytes > room_) {
      ++result_.too_large;
      layout.recompute = Recompute::kFull;
      too_large_.emplace_back(chosen.bytes, std::move(layout));
    } else if (!chosen.is_slow) {
      layout.recompute = chosen.recompute;
      add(std::move(layout));
    }
  }

  void finish() {
    std::vector<Found> found;
    for (const auto& [rivals, one] : best_) found.push_back(one);
    std::ranges::stable_sort(found, {}, [](const Found& one) { return one.time.seconds; });
    if (found.size() > wanted_) found.resize(wanted_);
    for (const Found& one : found) {
      const bool is_best = result_.best.empty();
      std::vector<std::int64_t> memory = is_best ? memory_.planned(one.layout) : std::vector{fullest_end(one.layout)};
      // With one micro-batch, say, two schedules are one under two names.
      const bool is_known = std::ranges::any_of(result_.best, [&](const PlannedLayout& other) {
        return other.time.seconds == one.time.seconds && std::ranges::max(other.memory) == memory.front();
      });
      if (is_known) continue;
      result_.best.push_back(
          {.layout = one.layout,
           .config = with_layout(request_.model, one.layout),
           .memory = std::move(memory),
           .time = one.time,
           .parts = request_.profile == nullptr ? parts_of(request_, one.layout, one.time) : StepParts{}});
    }
    if (found.empty()) find_smallest();
  }

  // Planned in the order of what they take at least, until none can take less.
  void find_smallest() {
    std::ranges::stable_sort(too_large_, {}, &std::pair<std::int64_t, Layout>::first);
    result_.smallest_bytes = std::numeric_limits<std::int64_t>::max();
    for (const auto& [least, layout] : too_large_) {
      if (least >= result_.smallest_bytes) return;
      if (is_to_be_chosen(layout)) continue;
      const std::int64_t bytes = fullest_end(layout);
      if (bytes >= result_.smallest_bytes) continue;
      result_.smallest_bytes = bytes;
      result_.smallest = layout;
    }
  }

  const PlanRequest& request_;
  KnownLayouts& known_;
  const std::size_t wanted_;
  const std::int64_t room_;
  const bool chooses_recompute_;  // stage by stage
  LayoutMemory memory_;
  const std::unique_ptr<LayoutCosts> times_;
  std::priority_queue<Candidate> queue_;
  std::int64_t number_ = 0, plans_of_stages_ = 0;
  std::map<RivalKey, Found> best_;
  std::set<Layout> looked_at_;
  std::vector<std::pair<std::int64_t, Layout>> too_large_;  // with the bytes that they take at least
  SearchResult result_;
};

}  // namespace

RivalKey rivals_of(const Layout& layout, const FixedLayout& fixed) {
  if (fixed.has_mesh()) {
    return {
        0, 0, 0, static_cast<std::int64_t>(layout.schedule), layout.virtual_stages, layout.vocabulary_parallel ? 1 : 0};
  }
  return {layout.tensor, layout.pipeline, layout.data};
}

std::vector<Layout> layouts_of(const PlanRequest& request) {
  for (std::int64_t devices = request.cluster.devices; devices >= 1; --devices) {
    std::vector<Layout> layouts = layouts_on(devices, request.model, request.fixed);
    if (!layouts.empty()) return layouts;
  }
  throw_user_error("no layout of up to {} can run this model and batch with what is fixed",
                   counted(request.cluster.devices, "device"));
}

SearchResult search_layouts(const PlanRequest& request, std::size_t runners_up) {
  KnownLayouts known;
  return search_layouts(request, runners_up, known);
}

SearchResult search_layouts(const PlanRequest& request, std::size_t runners_up, KnownLayouts& known) {
  return Search(request, runners_up + 1, known).run();
}

}  // namespace teratron::plan

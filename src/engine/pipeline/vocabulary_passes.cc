#include "pipeline/vocabulary_passes.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "pipeline/checker.h"
#include "pipeline/timing/event_times.h"

namespace teratron::pipeline {
namespace {

constexpr double kRounding = 1e-9;  // of sums of times, relative

// Runs the stages through a schedule from one head to the next and inserts the joint passes.
class Insertion {
 public:
  Insertion(const Schedule& schedule, const Costs& costs)
      : source_(schedule), costs_(costs), times_(source_, costs), producers_(events(schedule)) {
    source_.vocabulary_parallel = true;
    for (int m = 0; m < source_.micro_batches; ++m) {  // look-ups are put before what needs them
      for (int s = 0; s < source_.slices_of(m); ++s) times_.happens({Outcome::kEmbedded, 0, m, s}, 0);
    }
    result_ = source_;
    for (std::vector<Action>& list : result_.actions) list.clear();
    stages_.resize(source_.actions.size());
    for (int stage = 0; stage < source_.stages; ++stage) {
      for (std::size_t index = 0; index < list(stage).size(); ++index) {
        for_each_result(source_, stage, list(stage)[index], [&](const Event& event) {
          producers_[number_of(source_, event)] = Place{stage, index};
        });
      }
    }
  }

  Schedule run() {
    const int last = source_.stage_of(source_.cells() - 1), chunk = source_.virtual_stages - 1;
    for (std::size_t index = 0; index < list(last).size(); ++index) {
      const Action action = list(last)[index];
      if (action.pass != Pass::kForward || action.chunk != chunk) continue;
      require({last, index});
      run_required();
      run_others(at(last).clock);
      add_head(action);
    }
    for (int stage = 0; stage < source_.stages; ++stage) {
      while (has_next(stage)) append(stage);
    }
    add_embedding_backwards();
    return std::move(result_);
  }

 private:
  struct Place {
    int stage = 0;
    std::size_t index = 0;
  };
  struct Stage {
    std::size_t next = 0, required = 0;  // in its list: the next action, and the end of those that the next head needs
    std::size_t begin = 0;               // in the result's list: since the last head
    double clock = 0;
  };
  Stage& at(int stage) { return stages_[static_cast<std::size_t>(stage)]; }
  const std::vector<Action>& list(int stage) const { return source_.actions[static_cast<std::size_t>(stage)]; }
  bool has_next(int stage) { return at(stage).next < list(stage).size(); }

  // Marks as required an action, the actions before it on its stage, and all actions that these need.
  void require(const Place& place) {
    std::vector<Place> open = {place};
    while (!open.empty()) {
      const auto [stage, end] = open.back();
      open.pop_back();
      std::size_t& required = at(stage).required;
      for (; required <= end; ++required) {
        for_each_need(source_, stage, list(stage)[required], [&](const Event& need) {
          if (const auto& producer = producers_[number_of(source_, need)]) open.push_back(*producer);
        });
      }
    }
  }

  double arrival(int stage) { return times_.arrival(stage, list(stage)[at(stage).next]); }

  void perform(int stage) {
    at(stage).clock =
        std::max(at(stage).clock, arrival(stage)) + costs_.of(source_, stage, list(stage)[at(stage).next]);
    append(stage);
  }

  void append(int stage) {
    const Action& action = list(stage)[at(stage).next++];
    times_.happens(stage, action, at(stage).clock);
    result_.actions[static_cast<std::size_t>(stage)].push_back(action);
    if (source_.cell(stage, action) != 0) return;
    if (action.pass == Pass::kForward) embedded_.push_back(action);
    if (makes_input_gradient(action.pass)) differentiated_.push_back(action);
  }

  void run_required() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage < source_.stages; ++stage) {
        while (at(stage).next < at(stage).required && arrival(stage) < EventTimes::kNotYet) {
          perform(stage);
          moved = true;
        }
      }
    }
    for (const Stage& stage : stages_) check(stage.next >= stage.required, "a schedule fit to run comes to its heads");
  }

  // Runs actions that the next head does not need. `ready`: when that head can begin. An action runs if it ends by
  // then, or if it delays the head by less than the stage would otherwise wait. An action whose input has not arrived
  // yet must not delay the head at all, since the stage would wait for that input first.
  void run_others(double ready) {
    std::vector<bool> is_done(stages_.size(), false);
    std::vector<double> starts(stages_.size());  // of the next actions; kNotYet: of none
    for (int stage = 0; stage < source_.stages; ++stage) starts[static_cast<std::size_t>(stage)] = start(stage);
    while (true) {
      const auto earliest = std::ranges::min_element(starts);
      if (*earliest == EventTimes::kNotYet) return;
      const auto stage = static_cast<int>(earliest - starts.begin());
      const Action& action = list(stage)[at(stage).next];
      const double time = costs_.of(source_, stage, action);
      const bool waits = arrival(stage) > at(stage).clock * (1 + kRounding);
      const bool fits = *earliest + time <= ready * (1 + kRounding);
      if (!fits && (waits || *earliest + time / 2 >= ready * (1 - kRounding))) {
        is_done[static_cast<std::size_t>(stage)] = true;
        *earliest = EventTimes::kNotYet;
        continue;
      }
      perform(stage);
      const int cell = source_.cell(stage, action);  // whose neighbours alone may have waited for it
      for (int near = std::max(cell - 1, 0); near <= std::min(cell + 1, source_.cells() - 1); ++near) {
        const int waiting = source_.stage_of(near);
        if (!is_done[static_cast<std::size_t>(waiting)]) starts[static_cast<std::size_t>(waiting)] = start(waiting);
      }
    }
  }
  // When a stage's next action can begin; kNotYet where it has none, or needs a result of an action that has not run.
  double start(int stage) { return has_next(stage) ? std::max(at(stage).clock, arrival(stage)) : EventTimes::kNotYet; }

  // Adds the head of `forward` to all stages. The look-ups that actions since the last head need go before those
  // actions; the look-ups' backwards that have become possible go after this head.
  void add_head(const Action& forward) {
    double begin = 0, time = 0;
    for (int stage = 0; stage < source_.stages; ++stage) {
      std::vector<Action>& actions = result_.actions[static_cast<std::size_t>(stage)];
      auto where = actions.begin() + static_cast<std::ptrdiff_t>(at(stage).begin);
      for (const Action& one : embedded_) {
        where = std::next(actions.insert(where, {Pass::kEmbedding, one.micro_batch, one.slice, 0}));
      }
      const Action head{Pass::kHead, forward.micro_batch, forward.slice, forward.chunk};
      actions.push_back(head);
      begin = std::max(begin, at(stage).clock);
      time = std::max(time, costs_.of(source_, stage, head));
    }
    embedded_.clear();
    times_.happens({Outcome::kLossGradient, source_.cells() - 1, forward.micro_batch, forward.slice}, begin + time);
    add_embedding_backwards();
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      stages_[stage].clock = begin + time;
      stages_[stage].begin = result_.actions[stage].size();
    }
  }

  void add_embedding_backwards() {
    for (std::vector<Action>& actions : result_.actions) {
      for (const Action& one : differentiated_) {
        actions.push_back({Pass::kEmbeddingBackward, one.micro_batch, one.slice, 0});
      }
    }
    differentiated_.clear();
  }

  Schedule source_;
  const Costs& costs_;
  EventTimes times_;
  std::vector<std::optional<Place>> producers_;  // by event; none of joint passes
  std::vector<Stage> stages_;
  std::vector<Action> embedded_, differentiated_;  // of the first cell: forwards and backwards since the last head
  Schedule result_;
};

}  // namespace

Schedule with_vocabulary_passes(const Schedule& schedule, const Costs& costs) {
  check_schedule(schedule);
  return Insertion(schedule, costs).run();
}

}  // namespace teratron::pipeline

// Schedules run by real threads that receive, compute and send, on a model of integers: what an executor will do with
// them, small enough to be exact. Whatever the schedule, gradients are those of one rank, bit for bit, and as many
// activations are alive as the schedule says.
//
// A cell with weight w takes slices x_1 .. x_k of a micro-batch to y_s = w (3 x_s + sum_{j <= s} x_j): like attention,
// a slice looks back at all the slices before it. Arithmetic is modulo 2^64.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <tuple>

#include "pipeline/checker.h"
#include "pipeline/deferral.h"
#include "pipeline/dependencies.h"
#include "pipeline/memory.h"
#include "pipeline/random_schedule.h"

namespace teratron::testing {
namespace {

using namespace pipeline;
using Value = std::uint64_t;

Value weight_of(int cell) { return 2 * static_cast<Value>(cell) + 3; }
Value input_of(int m, int s) { return 1000 * static_cast<Value>(m) + static_cast<Value>(s) + 1; }
Value loss_gradient(Value y, int m, int s) { return y * y + input_of(m, s); }

struct Gradients {
  std::map<int, Value> weights;                 // by cell
  std::map<std::pair<int, int>, Value> inputs;  // of cell 0, by micro-batch and slice
  bool operator==(const Gradients&) const = default;
};

// One rank, whole sequences, straight from the equation.
Gradients on_one_rank(const Schedule& schedule) {
  Gradients gradients;
  for (int m = 0; m < schedule.micro_batches; ++m) {
    const auto k = static_cast<std::size_t>(schedule.slices_of(m));
    std::vector<std::vector<Value>> x = {{}};  // [cell][slice]
    for (int s = 0; s < schedule.slices_of(m); ++s) x[0].push_back(input_of(m, s));
    for (int cell = 0; cell < schedule.cells(); ++cell) {
      const std::vector<Value> in = x.back();
      std::vector<Value> out(k);
      for (std::size_t s = 0; s < k; ++s) {
        out[s] = 3 * in[s];
        for (std::size_t j = 0; j <= s; ++j) out[s] += in[j];
        out[s] *= weight_of(cell);
      }
      x.push_back(out);
    }
    std::vector<Value> dy(k);
    for (std::size_t s = 0; s < k; ++s) dy[s] = loss_gradient(x.back()[s], m, static_cast<int>(s));
    for (int cell = schedule.cells() - 1; cell >= 0; --cell) {
      const std::vector<Value>& in = x[static_cast<std::size_t>(cell)];
      std::vector<Value> dx(k, 0);
      for (std::size_t s = 0; s < k; ++s) {
        Value seen = 3 * in[s];
        dx[s] += 3 * weight_of(cell) * dy[s];
        for (std::size_t j = 0; j <= s; ++j) {
          seen += in[j];
          dx[j] += weight_of(cell) * dy[s];
        }
        gradients.weights[cell] += dy[s] * seen;
      }
      dy = dx;
    }
    for (int s = 0; s < schedule.slices_of(m); ++s) gradients.inputs[{m, s}] = dy[static_cast<std::size_t>(s)];
  }
  return gradients;
}

// First in, first out, without tags.
class Channel {
 public:
  void send(Value value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(value);
    arrived_.notify_one();
  }
  Value receive() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !values_.empty(); });
    const Value value = values_.front();
    values_.pop_front();
    return value;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Value> values_;
};

// [from, to, forward or backward]
using Channels = std::map<std::tuple<int, int, bool>, Channel>;

class Stage {
 public:
  Stage(const Schedule& schedule, int stage, Channels& channels)
      : schedule_(schedule), stage_(stage), channels_(channels) {}

  void run() {
    for (const Action& action : schedule_.actions[static_cast<std::size_t>(stage_)]) {
      const Key key{schedule_.cell(stage_, action), action.micro_batch, action.slice};
      if (action.pass == Pass::kForward) {
        forward(action, key);
      } else {
        if (action.pass != Pass::kBackwardWeight) backward_input(action, key);
        if (action.pass != Pass::kBackwardInput) backward_weight(key);
      }
      peak_ = std::max(peak_, static_cast<std::int64_t>(saved_.size()));
    }
  }

  Gradients gradients;
  std::int64_t peak() const { return peak_; }

 private:
  using Key = std::tuple<int, int, int>;  // cell, micro-batch, slice
  struct Saved {
    Value seen = 0;  // 3 x_s + sum of x_j
    Value dy = 0;
  };

  // Input of the action: from another stage, or from this stage's own cell before it in the pass's direction.
  Value take(const Action& action, const Key& key) {
    const bool forward = action.pass == Pass::kForward;
    if (const auto from = receives_from(schedule_, stage_, action)) {
      return channels_.at({*from, stage_, forward}).receive();
    }
    return own_.at({forward, key});
  }
  void give(const Action& action, const Key& next, Value value) {
    const bool forward = action.pass == Pass::kForward;
    if (const auto to = sends_to(schedule_, stage_, action)) {
      channels_.at({stage_, *to, forward}).send(value);
    } else {
      own_[{forward, next}] = value;
    }
  }

  void forward(const Action& action, const Key& key) {
    const auto [cell, m, s] = key;
    const Value x = cell == 0 ? input_of(m, s) : take(action, key);
    Value& context = contexts_[{cell, m}];
    context += x;  // the cache of keys
    const Value seen = 3 * x + context, y = weight_of(cell) * seen;
    saved_[key] = {.seen = seen};
    if (cell + 1 == schedule_.cells()) {
      own_[{false, key}] = loss_gradient(y, m, s);
    } else {
      give(action, {cell + 1, m, s}, y);
    }
  }

  void backward_input(const Action& action, const Key& key) {
    const auto [cell, m, s] = key;
    const Value dy = cell + 1 == schedule_.cells() ? own_.at({false, key}) : take(action, key);
    Value& later = context_gradients_[{cell, m}];  // of the keys of this slice and those before, by slices so far
    later += dy;
    const Value dx = weight_of(cell) * (3 * dy + later);
    saved_.at(key).dy = dy;
    if (cell == 0) {
      gradients.inputs[{m, s}] = dx;
    } else {
      give(action, {cell - 1, m, s}, dx);
    }
  }

  void backward_weight(const Key& key) {
    const Saved& saved = saved_.at(key);
    gradients.weights[std::get<0>(key)] += saved.dy * saved.seen;
    saved_.erase(key);
  }

  const Schedule& schedule_;
  int stage_;
  Channels& channels_;
  std::map<std::pair<bool, Key>, Value> own_;  // results for this stage itself
  std::map<std::pair<int, int>, Value> contexts_, context_gradients_;
  std::map<Key, Saved> saved_;
  std::int64_t peak_ = 0;
};

void expect_gradients_of_one_rank(const Schedule& schedule) {
  Channels channels;
  std::vector<Stage> stages;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    for (int other = 0; other < schedule.stages; ++other) {
      for (const bool forward : {false, true}) channels[{stage, other, forward}];
    }
    stages.emplace_back(schedule, stage, channels);
  }
  std::vector<std::jthread> threads;
  for (Stage& stage : stages) threads.emplace_back([&stage] { stage.run(); });
  threads.clear();
  Gradients all;
  for (Stage& stage : stages) {
    all.weights.merge(stage.gradients.weights);
    all.inputs.merge(stage.gradients.inputs);
  }
  EXPECT_EQ(all, on_one_rank(schedule));
  const std::vector<MemoryPeak> peaks = memory_peaks(schedule);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) EXPECT_EQ(stages[stage].peak(), peaks[stage].slices);
}

TEST(ToyExecution, EveryScheduleGivesTheGradientsOfOneRankInTheMemoryItPromises) {
  RandomSequence random(RandomStream{.seed = 1});
  for (int trial = 0; trial < 150 && !HasFailure(); ++trial) {
    const Schedule schedule = any_schedule(random);
    expect_gradients_of_one_rank(schedule);
    const std::int64_t bound = most_live_slices(schedule) + between(random, 0, 3);
    expect_gradients_of_one_rank(defer_weight_gradients(schedule, even_costs(schedule, 1, 2), bound));
  }
}

}  // namespace
}  // namespace teratron::testing

#include "simulation/pipeline_run.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "pipeline/dependencies.h"
#include "simulation/ports.h"

namespace teratron::simulation {
namespace {

using pipeline::Action;
using pipeline::Event;
using pipeline::Outcome;
using pipeline::Schedule;

constexpr double kMilliseconds = 1e-3;  // in seconds

// The meaning of a task, for traces.
struct Noted {
  Span span;
  TaskId task = -1;
};

// A pass's first and last piece, and the time of its work. Between pieces it may wait for weights, so that time is not
// the time from the first start to the last end.
struct PassTasks {
  TaskId first = -1, last = -1;
  double seconds = 0;
};

class Run {
 public:
  Run(const PipelineWork& work, const Cluster& cluster, bool keeps_spans)
      : work_(work),
        schedule_(work.schedule),
        stages_(schedule_.stages),
        ports_(cluster, {work.tensor, schedule_.stages, work.data}, events_),
        keeps_spans_(keeps_spans) {
    check_sizes();
    for (int stage = 0; stage < stages_; ++stage) {
      streams_.push_back({.passes = events_.add_stream(),
                          .outputs = events_.add_stream(),
                          .gradients = events_.add_stream(),
                          .sums = events_.add_stream(),
                          .gathers = events_.add_stream()});
    }
    arrivals_.assign(pipeline::events(schedule_), -1);
    pass_tasks_.resize(schedule_.actions.size());
    pieces_.resize(schedule_.actions.size());
    last_sums_.assign(schedule_.actions.size(), -1);
    count_weight_passes();
  }

  PipelineResult run() {
    const pipeline::Progress progress =
        pipeline::play(schedule_, [&](int stage, std::size_t place) { add_action(stage, place); });
    for (std::size_t stage = 0; stage < progress.size(); ++stage) {
      check_equal(progress[stage], schedule_.actions[stage].size(), "actions that a stage comes to");
    }
    add_sums_after_passes();
    add_tied_sum();
    add_update();
    events_.run();
    return result();
  }

 private:
  struct StageStreams {
    StreamId passes, outputs, gradients, sums, gathers;
  };
  // A stage's messages to one other stage in one direction, forward or backward.
  struct Channel {
    Ports::Way way;
    std::vector<RouteId> others;  // of other copies, over the same ports
    StreamId stream = kNoStream;
  };

  static std::size_t at(int value) { return static_cast<std::size_t>(value); }
  bool shards_gradients() const { return work_.shards_gradients && sums_copies(); }
  bool sums_copies() const { return work_.data > 1 && !work_.gradient_bytes.empty(); }

  void check_sizes() const {
    const auto size_is = [](const std::vector<double>& values, std::size_t expected, const char* what) {
      if (!values.empty()) check_equal(values.size(), expected, what);
    };
    check_equal(work_.costs.passes.size(), at(schedule_.cells()), "cells that cost something");
    size_is(work_.message_bytes, work_.costs.passes.front().size(), "columns of messages");
    size_is(work_.gradient_bytes, at(schedule_.cells()), "cells with gradients");
    size_is(work_.weight_bytes, at(schedule_.cells()), "cells with weights");
    size_is(work_.update_seconds, at(stages_), "stages that update");
    check(!shards_gradients() || !work_.weight_bytes.empty(), "sharded gradients have weights to gather");
  }

  void count_weight_passes() {
    weight_passes_left_.assign(at(schedule_.cells()), 0);
    for (int stage = 0; stage < stages_; ++stage) {
      for (const Action& action : schedule_.actions[at(stage)]) {
        if (pipeline::makes_weight_gradient(action.pass)) ++weight_passes_left_[at(schedule_.cell(stage, action))];
      }
    }
  }

  void add_action(int stage, std::size_t place) {
    const Action& action = schedule_.actions[at(stage)][place];
    std::vector<TaskId> after;
    pipeline::for_each_need(schedule_, stage, action, [&](const Event& need) {
      if (schedule_.stage_of(need.cell) == stage) return;  // an earlier task of this stream
      const TaskId arrival = arrivals_[number_of(schedule_, need)];
      if (arrival >= 0) after.push_back(arrival);
    });
    if (is_joint(action.pass)) add_together(stage, after);
    const double seconds = work_.costs.of(schedule_, stage, action) * kMilliseconds;
    const bool completes =
        pipeline::makes_weight_gradient(action.pass) && --weight_passes_left_[at(schedule_.cell(stage, action))] == 0;
    const StreamId stream = streams_[at(stage)].passes;
    if (shards_gradients()) {
      add_sharded_pass(stage, action, seconds, after);
    } else if (completes && sums_copies() && work_.gradient_pieces > 0) {
      add_last_pass(stage, schedule_.cell(stage, action), seconds, after);
    } else {
      const TaskId task = events_.compute(stream, seconds, after);
      pass_tasks_[at(stage)].push_back({task, task, seconds});
    }
    send_results(stage, action);
  }

  // Makes a joint pass wait for what every stage did before it. play() visits it on all stages, from the first on.
  void add_together(int stage, std::vector<TaskId>& after) {
    if (stage == 0) {
      joint_after_.clear();
      for (const auto& tasks : pass_tasks_) {
        if (!tasks.empty()) joint_after_.push_back(tasks.back().last);
      }
    }
    std::ranges::copy(joint_after_, std::back_inserter(after));
  }

  // Adds the pass that completes a cell's gradients, piece by piece, each with its sum.
  void add_last_pass(int stage, int cell, double seconds, std::vector<TaskId> after) {
    const int pieces = work_.gradient_pieces;
    TaskId first = -1, piece = -1;
    for (int i = 0; i < pieces; ++i) {
      piece = events_.compute(streams_[at(stage)].passes, seconds / pieces, after);
      if (i == 0) first = piece;
      after.clear();  // the rest follows on its stream
      add_sum(stage, cell, work_.gradient_bytes[at(cell)] / pieces, {&piece, 1});
    }
    pass_tasks_[at(stage)].push_back({first, piece, seconds});
  }

  // Adds a pass of a cell with sharded gradients, piece by piece, with its gathers of weights and its sums.
  void add_sharded_pass(int stage, const Action& action, double seconds, std::vector<TaskId> after) {
    constexpr std::size_t kAhead = 2;  // pieces that may be whole at once: one computes, the next is gathered
    const int cell = schedule_.cell(stage, action), pieces = std::max(1, work_.gradient_pieces);
    const bool reads_weights = action.pass == pipeline::Pass::kForward ||
                               (work_.shards_weights && pipeline::makes_input_gradient(action.pass));
    std::vector<TaskId>& done = pieces_[at(stage)];
    TaskId first = -1, piece = -1;
    for (int i = 0; i < pieces; ++i) {
      if (reads_weights) {
        std::vector<TaskId> freed;
        if (done.size() >= kAhead) freed.push_back(done.end()[-static_cast<std::ptrdiff_t>(kAhead)]);
        after.push_back(add_ring(stage, streams_[at(stage)].gathers, work_.weight_bytes[at(cell)] / pieces, 1, freed));
      }
      piece = events_.compute(streams_[at(stage)].passes, seconds / pieces, after);
      if (i == 0) first = piece;
      done.push_back(piece);
      after.clear();
      if (pipeline::makes_weight_gradient(action.pass)) {
        add_sum(stage, cell, work_.gradient_bytes[at(cell)] / pieces, {&piece, 1});
      }
    }
    pass_tasks_[at(stage)].push_back({first, piece, seconds});
  }

  void send_results(int stage, const Action& action) {
    const std::optional<int> to = pipeline::sends_to(schedule_, stage, action);
    if (!to) return;
    const bool is_forward = action.pass == pipeline::Pass::kForward;
    const Event event{is_forward ? Outcome::kOutput : Outcome::kInputGradient, schedule_.cell(stage, action),
                      action.micro_batch, action.slice};
    const std::size_t column = work_.costs.column(action.micro_batch, action.slice);
    const double bytes = work_.message_bytes.empty() ? 0 : work_.message_bytes[column];
    const Channel& channel = channel_of(stage, *to, is_forward);
    // The latency of one message passes beside those before it; their bytes go one after the other.
    TaskId before = pass_tasks_[at(stage)].back().last;
    if (channel.way.latency > 0) before = events_.compute(kNoStream, channel.way.latency, {&before, 1});
    for (const RouteId other : channel.others) events_.transfer(kNoStream, other, bytes, 0, {&before, 1});
    if (bytes > 0) before = events_.transfer(channel.stream, channel.way.route, bytes, 0, {&before, 1});
    arrivals_[number_of(schedule_, event)] = before;
    if (!keeps_spans_ || bytes <= 0) return;
    const Span span{.kind = is_forward ? Span::Kind::kOutput : Span::Kind::kInputGradient,
                    .stage = stage,
                    .cell = event.cell,
                    .micro_batch = action.micro_batch,
                    .slice = action.slice};
    noted_.push_back({span, before});
  }

  const Channel& channel_of(int from, int to, bool is_forward) {
    auto& channel = channels_[{from, to, is_forward}];
    if (!channel) {
      const StageStreams& streams = streams_[at(from)];
      channel = Channel{ports_.between(from, to), ports_.of_other_copies(from, to),
                        is_forward ? streams.outputs : streams.gradients};
    }
    return *channel;
  }

  // `passes_over`: how many times the bytes go around the ring: twice for an all-reduce.
  TaskId add_ring(int stage, StreamId stream, double bytes, int passes_over, std::span<const TaskId> after) {
    auto& ring = rings_[stage];
    if (!ring) ring = ports_.ring(stage);
    const auto ranks = static_cast<double>(work_.data), steps = passes_over * (ranks - 1);
    return events_.transfer(stream, ring->route, steps / ranks * bytes, steps * ring->latency, after);
  }

  void add_sum(int stage, int cell, double bytes, std::span<const TaskId> after) {
    const TaskId sum = add_ring(stage, streams_[at(stage)].sums, bytes, work_.shards_optimizer ? 1 : 2, after);
    last_sums_[at(stage)] = sum;
    if (keeps_spans_) noted_.push_back({{.kind = Span::Kind::kSum, .stage = stage, .cell = cell}, sum});
  }

  void add_sums_after_passes() {
    if (!sums_copies() || work_.gradient_pieces > 0 || work_.shards_gradients) return;
    for (int stage = 0; stage < stages_; ++stage) {
      const TaskId last = pass_tasks_[at(stage)].back().last;
      for (const int cell : cells_of(stage)) {
        add_sum(stage, cell, work_.gradient_bytes[at(cell)], {&last, 1});
      }
    }
  }

  std::vector<int> cells_of(int stage) const {
    std::vector<int> cells;
    for (int chunk = 0; chunk < schedule_.virtual_stages; ++chunk) {
      cells.push_back(schedule_.cell_map().cell(stage, chunk));
    }
    return cells;
  }

  // The tasks that must be done before everything added to a stage so far is done.
  std::vector<TaskId> done_at(int stage) const {
    std::vector<TaskId> done;
    if (!pass_tasks_[at(stage)].empty()) done.push_back(pass_tasks_[at(stage)].back().last);
    if (last_sums_[at(stage)] >= 0) done.push_back(last_sums_[at(stage)]);
    return done;
  }

  // Adds the sum of the tied embedding: the first and the last stage send each other their parts.
  void add_tied_sum() {
    const int last = stages_ - 1;
    if (last == 0 || work_.tied_bytes <= 0) return;
    std::vector<TaskId> after = done_at(0);
    std::ranges::copy(done_at(last), std::back_inserter(after));
    for (const auto& [from, to] : {std::pair{0, last}, std::pair{last, 0}}) {
      const Ports::Way way = ports_.between(from, to);
      for (const RouteId other : ports_.of_other_copies(from, to)) {
        events_.transfer(kNoStream, other, work_.tied_bytes, way.latency, after);
      }
      const TaskId sum = events_.transfer(streams_[at(from)].sums, way.route, work_.tied_bytes, way.latency, after);
      tied_sums_.push_back(sum);
      if (keeps_spans_) noted_.push_back({{.kind = Span::Kind::kTiedSum, .stage = from}, sum});
    }
  }

  // Adds the updates. The norm is taken over the gradients of all stages, so each update waits for all of them.
  void add_update() {
    std::vector<TaskId> done = tied_sums_;
    for (int stage = 0; stage < stages_; ++stage) std::ranges::copy(done_at(stage), std::back_inserter(done));
    const TaskId norm = events_.compute(kNoStream, 0, done);
    for (int stage = 0; stage < stages_; ++stage) {
      const double seconds = work_.update_seconds.empty() ? 0 : work_.update_seconds[at(stage)];
      const TaskId update = events_.compute(streams_[at(stage)].passes, seconds, {&norm, 1});
      if (keeps_spans_) noted_.push_back({{.kind = Span::Kind::kUpdate, .stage = stage}, update});
      const bool gathers = work_.shards_optimizer && work_.data > 1 && !work_.shards_gradients;
      if (!gathers || work_.weight_bytes.empty()) continue;
      for (const int cell : cells_of(stage)) {
        const TaskId gathered =
            add_ring(stage, streams_[at(stage)].sums, work_.weight_bytes[at(cell)], 1, {&update, 1});
        if (keeps_spans_) noted_.push_back({{.kind = Span::Kind::kGather, .stage = stage, .cell = cell}, gathered});
      }
    }
  }

  PipelineResult result() const {
    PipelineResult result;
    result.seconds = events_.end();
    result.events = events_.events();
    result.timeline = timeline();
    result.pipeline_seconds = result.timeline.iteration * kMilliseconds;
    for (int stage = 0; stage < stages_; ++stage) {
      StageUse use{
          .busy = result.timeline.busy[at(stage)] * kMilliseconds,
          .message_seconds = events_.busy(streams_[at(stage)].outputs) + events_.busy(streams_[at(stage)].gradients),
          .sum_seconds = events_.busy(streams_[at(stage)].sums) + events_.busy(streams_[at(stage)].gathers)};
      if (result.pipeline_seconds > 0) use.bubble_share = std::max(0.0, 1 - use.busy / result.pipeline_seconds);
      result.stages.push_back(use);
    }
    for (const Ports::Port& port : ports_.used()) {
      const double bytes = events_.bytes_over(port.link) * port.sharers;
      if (bytes > 0) result.links.push_back({events_.link_name(port.link), events_.link_busy(port.link), bytes});
    }
    for (const Noted& noted : noted_) {
      result.spans.push_back(noted.span);
      const TaskTimes times = events_.times(noted.task);
      result.spans.back().start = times.start;
      result.spans.back().end = times.end;
    }
    return result;
  }

  pipeline::Simulation timeline() const {
    pipeline::Simulation timeline;
    for (int stage = 0; stage < stages_; ++stage) {
      timeline.busy.push_back(0);
      timeline.actions.emplace_back();
      const std::vector<Action>& actions = schedule_.actions[at(stage)];
      for (std::size_t place = 0; place < actions.size(); ++place) {
        const auto& [first, last, seconds] = pass_tasks_[at(stage)][place];
        const double start = events_.times(first).start / kMilliseconds, end = events_.times(last).end / kMilliseconds;
        timeline.actions.back().push_back({actions[place], start, end});
        timeline.busy.back() += seconds / kMilliseconds;
        timeline.iteration = std::max(timeline.iteration, end);
      }
    }
    return timeline;
  }

  const PipelineWork& work_;
  const Schedule& schedule_;
  const int stages_;
  EventSimulation events_;
  Ports ports_;
  const bool keeps_spans_;
  std::vector<StageStreams> streams_;
  std::map<std::tuple<int, int, bool>, std::optional<Channel>> channels_;
  std::map<int, std::optional<Ports::Way>> rings_;
  std::vector<TaskId> arrivals_;                    // [event]: of its message; -1: it stays in its stage
  std::vector<std::vector<PassTasks>> pass_tasks_;  // [stage][place]
  std::vector<std::vector<TaskId>> pieces_;         // [stage]: of passes with shared-out weights
  std::vector<std::int64_t> weight_passes_left_;    // [cell]
  std::vector<TaskId> last_sums_;                   // [stage]; -1: none
  std::vector<TaskId> joint_after_;
  std::vector<TaskId> tied_sums_;
  std::vector<Noted> noted_;
};

}  // namespace

PipelineResult simulate(const PipelineWork& work, const Cluster& cluster, bool keeps_spans) {
  return Run(work, cluster, keeps_spans).run();
}

}  // namespace teratron::simulation

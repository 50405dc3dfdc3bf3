#include "simulation/event_simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace teratron::simulation {
namespace {

template <class Items>
auto& item(Items& items, std::int32_t which) {
  return items[static_cast<std::size_t>(which)];
}

bool is_amount(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

StreamId EventSimulation::add_stream() {
  streams_.emplace_back();
  return static_cast<StreamId>(streams_.size()) - 1;
}

LinkId EventSimulation::add_link(std::string name, double bytes_per_second) {
  check(std::isfinite(bytes_per_second) && bytes_per_second > 0, "a link carries something");
  links_.push_back({.name = std::move(name), .bytes_per_second = bytes_per_second, .routes = {}});
  return static_cast<LinkId>(links_.size()) - 1;
}

RouteId EventSimulation::add_route(std::span<const LinkId> links) {
  std::vector<LinkId> sorted(links.begin(), links.end());
  std::ranges::sort(sorted);
  const auto [found, is_new] = route_of_.try_emplace(sorted, static_cast<RouteId>(routes_.size()));
  if (!is_new) return found->second;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    check(sorted[i] >= 0 && static_cast<std::size_t>(sorted[i]) < links_.size(),
          "a route crosses links that there are");
    if (i == 0 || sorted[i] != sorted[i - 1]) item(links_, sorted[i]).routes.push_back(found->second);
  }
  routes_.push_back({.links = std::move(sorted), .messages = {}});
  return found->second;
}

TaskId EventSimulation::compute(StreamId stream, double seconds, std::span<const TaskId> after) {
  return add({.work = seconds, .stream = stream}, after);
}

TaskId EventSimulation::transfer(StreamId stream, RouteId route, double bytes, double latency,
                                 std::span<const TaskId> after) {
  check(route >= 0 && static_cast<std::size_t>(route) < routes_.size(), "a message has a route");
  return add({.work = bytes, .latency = latency, .stream = stream, .route = route}, after);
}

// A task waits only for tasks that were added before it, so tasks never wait for one another.
TaskId EventSimulation::add(const Task& task, std::span<const TaskId> after) {
  check(is_amount(task.work) && is_amount(task.latency), "times and bytes are at least 0");
  check(tasks_.size() < static_cast<std::size_t>(std::numeric_limits<TaskId>::max()), "tasks have numbers");
  const auto id = static_cast<TaskId>(tasks_.size());
  tasks_.push_back(task);
  const auto wait_for = [&](TaskId earlier) {
    check(earlier >= 0 && earlier < id, "a task waits for tasks that were added before it");
    waits_.emplace_back(earlier, id);
    ++tasks_.back().waits_for;
  };
  for (const TaskId earlier : after) wait_for(earlier);
  if (task.stream == kNoStream) return id;
  Stream& stream = item(streams_, task.stream);
  if (stream.last >= 0) wait_for(stream.last);
  stream.last = id;
  return id;
}

void EventSimulation::list_followers() {
  first_follower_.assign(tasks_.size() + 1, 0);
  for (const auto& [earlier, later] : waits_) ++first_follower_[static_cast<std::size_t>(earlier) + 1];
  for (std::size_t i = 1; i < first_follower_.size(); ++i) first_follower_[i] += first_follower_[i - 1];
  followers_.resize(waits_.size());
  std::vector<std::size_t> next(first_follower_.begin(), first_follower_.end() - 1);
  for (const auto& [earlier, later] : waits_) followers_[item(next, earlier)++] = later;
  waits_ = {};
}

void EventSimulation::run() {
  check(happened_ == 0, "a simulation runs once");
  list_followers();
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].waits_for == 0) start(static_cast<TaskId>(i), 0);
  }
  while (!queue_.empty()) {
    const Event event = queue_.top();
    queue_.pop();
    ++happened_;
    switch (event.kind) {
      case EventKind::kTaskEnds: finish(event.which, event.time); break;
      case EventKind::kMessageLeaves: enter(event.which, event.time); break;
      case EventKind::kRouteDelivers:
        if (event.version == item(routes_, event.which).version) deliver(event.which, event.time);
        break;
    }
  }
}

void EventSimulation::add_event(double time, EventKind kind, std::int32_t which, std::int64_t version) {
  queue_.push({.time = time, .order = found_++, .kind = kind, .which = which, .version = version});
}

void EventSimulation::start(TaskId id, double now) {
  Task& task = item(tasks_, id);
  task.start = now;
  const bool flows = task.route >= 0 && task.work > 0 && !item(routes_, task.route).links.empty();
  if (flows) return add_event(now + task.latency, EventKind::kMessageLeaves, id);
  add_event(now + (task.route >= 0 ? task.latency : task.work), EventKind::kTaskEnds, id);
}

void EventSimulation::finish(TaskId id, double now) {
  Task& task = item(tasks_, id);
  task.end = now;
  end_ = std::max(end_, now);
  if (task.stream != kNoStream) item(streams_, task.stream).busy += now - task.start;
  const auto at = static_cast<std::size_t>(id);
  for (std::size_t i = first_follower_[at]; i < first_follower_[at + 1]; ++i) {
    if (--item(tasks_, followers_[i]).waits_for == 0) start(followers_[i], now);
  }
}

void EventSimulation::enter(TaskId id, double now) {
  const Task& task = item(tasks_, id);
  Route& route = item(routes_, task.route);
  if (route.messages.empty()) {
    route.progress = 0;
  } else {
    route.progress += route.rate * (now - route.at);
  }
  route.at = now;
  route.messages.push({.ends_at = route.progress + task.work, .task = id});
  for (const LinkId which : route.links) {
    Link& link = item(links_, which);
    if (link.messages++ == 0) link.busy_since = now;
    link.bytes += task.work;
  }
  load_changed(route, now);
}

void EventSimulation::deliver(RouteId id, double now) {
  Route& route = item(routes_, id);
  route.progress = route.messages.top().ends_at;  // exact, without the rounding of earlier steps
  route.at = now;
  std::vector<TaskId> arrived;
  while (!route.messages.empty() && route.messages.top().ends_at <= route.progress) {
    arrived.push_back(route.messages.top().task);
    route.messages.pop();
    for (const LinkId which : route.links) {
      Link& link = item(links_, which);
      if (--link.messages == 0) link.busy += now - link.busy_since;
    }
  }
  route.next = -1;
  load_changed(route, now);
  for (const TaskId task : arrived) finish(task, now);
}

void EventSimulation::load_changed(const Route& route, double now) {
  LinkId before = -1;
  for (const LinkId which : route.links) {
    if (which == before) continue;
    before = which;
    for (const RouteId other : item(links_, which).routes) {
      if (!item(routes_, other).messages.empty()) set_pace(other, now);
    }
  }
}

void EventSimulation::set_pace(RouteId id, double now) {
  Route& route = item(routes_, id);
  double rate = std::numeric_limits<double>::infinity();
  for (const LinkId which : route.links) {
    const Link& link = item(links_, which);
    rate = std::min(rate, link.bytes_per_second / static_cast<double>(link.messages));
  }
  if (rate == route.rate && route.next == route.messages.top().task) return;  // it still arrives when the queue says
  if (route.at < now) route.progress += route.rate * (now - route.at);
  route.at = now;
  route.rate = rate;
  route.next = route.messages.top().task;
  const double left = std::max(0.0, route.messages.top().ends_at - route.progress);
  add_event(now + left / rate, EventKind::kRouteDelivers, id, ++route.version);
}

TaskTimes EventSimulation::times(TaskId task) const { return {item(tasks_, task).start, item(tasks_, task).end}; }
double EventSimulation::busy(StreamId stream) const { return item(streams_, stream).busy; }
double EventSimulation::bytes_over(LinkId link) const { return item(links_, link).bytes; }
double EventSimulation::link_busy(LinkId link) const { return item(links_, link).busy; }
const std::string& EventSimulation::link_name(LinkId link) const { return item(links_, link).name; }

}  // namespace teratron::simulation

// A discrete-event simulation of tasks on streams and links. A stream runs one task at a time, in the order in which
// they were added to it. Messages flow at the same time: each gets an equal share of the narrowest link that it
// crosses. Bandwidth that a message cannot use, because another link of its route is narrower, stays unused.
//
// All messages of a route are equally fast. A message is therefore stored as the point of its route's progress at which
// it ends. When a link's load changes, only routes that cross it and have messages are updated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <string>
#include <vector>

namespace teratron::simulation {

using TaskId = std::int32_t;
using StreamId = std::int32_t;
using LinkId = std::int32_t;
using RouteId = std::int32_t;

constexpr StreamId kNoStream = -1;  // a task without a stream starts when the tasks that it waits for are done

struct TaskTimes {
  double start = 0, end = 0;  // seconds
};

class EventSimulation {
 public:
  StreamId add_stream();
  LinkId add_link(std::string name, double bytes_per_second);
  // Adds a route: the links that a message crosses, all at once. A link that is crossed twice is listed twice. An empty
  // route takes no time. Equal lists give the same route.
  RouteId add_route(std::span<const LinkId> links);

  // A task starts when its stream is free and all of `after`, which were added before it, are done.
  TaskId compute(StreamId stream, double seconds, std::span<const TaskId> after);
  // Takes `latency` (seconds), then its bytes cross the route; `bytes` is what crosses each of its links.
  TaskId transfer(StreamId stream, RouteId route, double bytes, double latency, std::span<const TaskId> after);

  // Runs all tasks; called once, when everything is added. Time grows as the tasks, times their logarithm.
  void run();

  TaskTimes times(TaskId task) const;
  double end() const { return end_; }
  double busy(StreamId stream) const;    // seconds at work
  double bytes_over(LinkId link) const;  // of all messages
  double link_busy(LinkId link) const;   // seconds with at least one message
  const std::string& link_name(LinkId link) const;
  std::int64_t events() const { return happened_; }  // handled by run()

 private:
  struct Task {
    double work = 0;     // seconds, or bytes
    double latency = 0;  // of a message
    double start = 0, end = 0;
    StreamId stream = kNoStream;
    RouteId route = -1;  // -1: computes
    std::int32_t waits_for = 0;
  };
  struct Stream {
    TaskId last = -1;
    double busy = 0;
  };
  struct Link {
    std::string name;
    double bytes_per_second = 0;
    std::vector<RouteId> routes;  // that cross it
    std::int64_t messages = 0;    // that cross it now; a message that crosses it twice counts twice
    double bytes = 0, busy = 0, busy_since = 0;
  };
  // `progress`: bytes that each of its messages has sent since the route was last idle.
  struct Message {
    double ends_at = 0;  // of the route's progress
    TaskId task = -1;
    bool operator>(const Message& other) const {
      return ends_at > other.ends_at || (ends_at == other.ends_at && task > other.task);
    }
  };
  struct Route {
    std::vector<LinkId> links;
    std::priority_queue<Message, std::vector<Message>, std::greater<>> messages;
    double progress = 0, at = 0, rate = 0;  // bytes, the time at which progress had that value, bytes a second
    TaskId next = -1;                       // the next message to arrive, by the event in the queue
    std::int64_t version = 0;               // of that event; older ones are void
  };
  enum class EventKind : std::uint8_t { kTaskEnds, kMessageLeaves, kRouteDelivers };
  struct Event {
    double time = 0;
    std::int64_t order = 0;  // events at one time happen in the order in which they were added
    EventKind kind = EventKind::kTaskEnds;
    std::int32_t which = 0;  // task or route
    std::int64_t version = 0;
    bool operator>(const Event& other) const {
      return time > other.time || (time == other.time && order > other.order);
    }
  };

  TaskId add(const Task& task, std::span<const TaskId> after);
  void list_followers();
  void add_event(double time, EventKind kind, std::int32_t which, std::int64_t version = 0);
  void start(TaskId task, double now);
  void finish(TaskId task, double now);
  void enter(TaskId task, double now);      // the message's bytes begin to flow
  void deliver(RouteId route, double now);  // the route's next messages have arrived
  void load_changed(const Route& route, double now);
  void set_pace(RouteId route, double now);

  std::vector<Task> tasks_;
  std::vector<Stream> streams_;
  std::vector<Link> links_;
  std::vector<Route> routes_;
  std::map<std::vector<LinkId>, RouteId> route_of_;
  std::vector<std::pair<TaskId, TaskId>> waits_;  // (earlier, later)
  std::vector<TaskId> followers_;                 // of each task, one after the other
  std::vector<std::size_t> first_follower_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::int64_t found_ = 0, happened_ = 0;
  double end_ = 0;
};

}  // namespace teratron::simulation

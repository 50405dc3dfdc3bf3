// The control thread: it alone reads from the connections and closes them.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "comm/control/control_plane.h"

namespace teratron {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Silence after which a process is lost; with the patience below, the job ends within ten seconds. The first rank may
// be silent for longer, since it judges the others.
constexpr auto kSilence = milliseconds(5000), kShortestSilence = milliseconds(2000);
constexpr auto kGraceOfFirst = milliseconds(1500);
constexpr auto kWakeUp = milliseconds(100);
// Time in which a rank's own thread must ask for failures; less where mpirun is about to kill it.
constexpr auto kPatience = milliseconds(1500), kPatienceTerminated = milliseconds(200);
// Time in which a rank that has a failure must end; more for one that failed itself and has to report it.
constexpr auto kLeaving = milliseconds(3000), kLeavingAfterOwn = milliseconds(10000);
// After SIGTERM: how long the notice of a failure may take.
constexpr auto kNotice = milliseconds(400);
// A process that has not run for this long was stopped itself and cannot judge who was silent.
constexpr auto kOwnPause = seconds(3);
constexpr auto kConnect = seconds(2), kAnswer = seconds(5);  // with the first rank
constexpr auto kPortInUse = seconds(10);                     // an earlier job may still be about to end
constexpr auto kLateComers = seconds(10);  // time in which late processes get the reason why the meeting failed
constexpr auto kFlush = seconds(1);        // how long the last frames may take

double in_seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

void print_line(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

}  // namespace

void ControlPlane::run() {
  if (!(is_first() ? open_listener() : join())) return;
  {
    const std::lock_guard lock(mutex_);
    termination_.emplace();
    last_run_ = Clock::now();
    next_notice_ = start_ + settings_.notice_interval;
    if (own_.size == 1) end_meeting();
    changed_.notify_all();
  }
  while (!stopping_) serve();
  shut_down();
}

void ControlPlane::serve() {
  wait_for_events();
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now - last_run_ > kOwnPause) {
    for (Peer& peer : peers_) peer.last_heard = now;
  }
  last_run_ = now;
  accept_members(now);
  receive_frames(now);
  look_for_closed();
  if (now >= next_beat_ && (!terminated_since_ || TerminationRequest::is_left_to_the_program())) {
    next_beat_ = now + settings_.watch.interval();
    beat(now);
    look_for_broken_channels();
  }
  look_for_silence(now);
  look_for_standstill(now);
  check_time_of_meeting(now);
  print_who_is_awaited(now);
  act_on_termination(now);
  end_where_nobody_asks(now);
}

void ControlPlane::wait_for_events() {
  std::vector<pollfd> waits = {{.fd = wake_, .events = POLLIN, .revents = 0}};
  {
    const std::lock_guard lock(mutex_);
    for (const int rank : neighbours()) {
      const FrameConnection& connection = peer(rank).connection;
      const auto events = static_cast<short>(connection.has_to_write() ? POLLIN | POLLOUT : POLLIN);
      if (connection.is_open()) waits.push_back({.fd = connection.socket().get(), .events = events, .revents = 0});
    }
    if (listener_) listener_->append_to(waits);
  }
  ::poll(waits.data(), waits.size(), static_cast<int>(kWakeUp.count()));
  std::uint64_t calls = 0;
  (void)!::read(wake_, &calls, sizeof(calls));
}

bool ControlPlane::open_listener() {
  while (!listener_) {
    for (const std::uint16_t port : own_.point.ports) {
      if (Socket socket = listen_at(port, own_.point.bind)) {
        const std::lock_guard lock(mutex_);
        listener_.emplace(std::move(socket), settings_.longest_hello);
        return true;
      }
    }
    const int error = errno;
    if (stopping_) return false;
    if (Clock::now() - start_ > std::min<milliseconds>(settings_.longest_meeting, kPortInUse)) {
      const std::lock_guard lock(mutex_);
      fail({.kind = FailureNotice::Kind::kEnvironment,
            .reason = fmt::format("rank 0 cannot listen at port {} on {}{}: {}; look for another job there or for a "
                                  "second process with RANK=0, or choose another MASTER_PORT",
                                  fmt::join(own_.point.ports, ", "), own_.host,
                                  own_.point.bind.empty() ? "" : fmt::format(" ({})", own_.point.bind),
                                  std::strerror(error))});
      return false;
    }
    std::this_thread::sleep_for(kWakeUp);
  }
  return true;
}

// Tries all addresses of the first rank until it answers.
bool ControlPlane::join() {
  for (auto next_notice = start_ + settings_.notice_interval; !stopping_;) {
    std::string last_try = "that name has no IPv4 address";
    for (const std::string& host : own_.point.hosts) {
      for (const std::uint16_t port : own_.point.ports) {
        for (const sockaddr_in& address : resolve(host, port)) {
          if (call_first_rank(address, last_try)) return true;
          if (has_failed_) return false;
        }
      }
    }
    const auto waited = Clock::now() - start_;
    if (waited > settings_.longest_meeting) {
      const std::lock_guard lock(mutex_);
      fail({.kind = FailureNotice::Kind::kEnvironment,
            .reason = fmt::format("rank {} did not find rank 0 at {} within {:g} seconds; see that it was started "
                                  "there and that this host reaches it (the last try: {})",
                                  own_.rank, own_.point.name, in_seconds(settings_.longest_meeting), last_try)});
      return false;
    }
    if (start_ + waited > next_notice) {
      next_notice += settings_.notice_interval;
      print_line(fmt::format("waiting for rank 0 of {} at {} ({:.0f} s): {}", own_.size, own_.point.name,
                             in_seconds(waited), last_try));
    }
    std::this_thread::sleep_for(kWakeUp);
  }
  return false;
}

bool ControlPlane::call_first_rank(const sockaddr_in& address, std::string& note) {
  FrameConnection connection(connect_to(address, kConnect));
  if (!connection.is_open()) {
    note = fmt::format("{}: {}", to_text(address), std::strerror(errno));
    return false;
  }
  connection.send(Hello::frame(own_));
  std::optional<Frame> answer;
  for (const auto end = Clock::now() + kAnswer; !stopping_ && connection.is_open() && Clock::now() < end;) {
    wait_for(connection.socket(), POLLIN, kWakeUp);
    answer = connection.receive();
    if (answer) break;
  }
  note = fmt::format("{}: {}", to_text(address), answer ? "another job answers there" : "no answer from rank 0");
  if (!answer) return false;
  const std::lock_guard lock(mutex_);
  if (auto notice = FailureNotice::parse(*answer)) fail(std::move(*notice));
  if (answer->size() != 2 || answer->front() != "welcome") return false;
  connection.allow_long_frames();
  peer(0) = {.connection = std::move(connection), .host = answer->back(), .last_heard = Clock::now()};
  peer(0).activity = activity();
  return true;
}

void ControlPlane::accept_members(Clock::time_point now) {
  constexpr int kMostAtOnce = 256;
  for (int calls = 0; listener_ && calls < kMostAtOnce; ++calls) {
    std::optional<Listener::Arrival> arrival = listener_->next();
    if (!arrival) return;
    if (const std::optional<Hello> hello = Hello::parse(arrival->hello, own_.point)) {
      admit(std::move(*arrival), *hello, now);
    } else {
      report_once(Stranger::kOtherSecret, arrival->connection, "it does not have this job's secret");
      arrival->connection.send({"another job"});
    }
  }
}

void ControlPlane::admit(Listener::Arrival arrival, const Hello& hello, Clock::time_point now) {
  if (is_closed(arrival.connection.socket())) return;  // it gave up waiting, and tries again
  if (auto fault = failure_ ? std::nullopt : fault_of(hello, hosts())) {
    if (!own_.point.is_drawn) {  // it may be a stranger, who must not end the job; a real member ends with this message
      report_once(Stranger::kContradiction, arrival.connection, fault->reason);
      arrival.connection.send(fault->frame());
      return;
    }
    fail(std::move(*fault));
  }
  const bool is_rank = hello.rank > 0 && hello.rank < own_.size;
  if (failure_) {
    arrival.connection.send(failure_->frame());
    if (is_rank) peer(hello.rank).was_notified = true;
    return;
  }
  arrival.connection.allow_long_frames();
  arrival.connection.send({"welcome", own_.host});
  peer(hello.rank) = {.connection = std::move(arrival.connection), .host = hello.host, .last_heard = now};
  peer(hello.rank).activity = activity();
  if (missing().empty()) end_meeting();
}

void ControlPlane::report_once(Stranger kind, const FrameConnection& connection, const std::string& what) {
  if (!reported_strangers_.insert(kind).second) return;
  print_line(fmt::format("put out a connection from {}: {}; more of the kind are put out without a word",
                         peer_of(connection.socket()), what));
}

void ControlPlane::receive_frames(Clock::time_point now) {
  for (const int rank : neighbours()) {
    Peer& from = peer(rank);
    if (from.connection.has_to_write()) from.connection.flush();
    while (const std::optional<Frame> frame = from.connection.receive()) {
      from.last_heard = now;
      take(rank, *frame);
    }
  }
}

void ControlPlane::take(int from, const Frame& frame) {
  const auto is = [&](std::string_view kind, std::size_t texts) { return frame.size() == texts && frame[0] == kind; };
  if (is("beat", 6)) {
    peer(from).activity = frame[1];
    awaited_ = frame[2];
    watch_.see(from,
               {.place = frame[1],
                .waits = !frame[3].empty(),
                .progress = count_from(frame[4]),
                .memory = static_cast<std::int64_t>(count_from(frame[5]))},
               Clock::now());
  } else if (is("failed", 3) && is_first()) {
    peer(from).activity = frame[1];
    declare_lost(from, frame[2]);
  } else if (is("done", 1) && is_first()) {
    mark_done(from);
  } else if (is("gather", 5) && is_first()) {
    contribute(from, frame[1], number_from(frame[2]), number_from(frame[3]), frame[4]);
  } else if (is("met", peers_.size() + 1) && !is_first()) {
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].host = frame[rank + 1];
    end_meeting();
  } else if (is("end", 1) && !is_first()) {
    is_over_ = true;
    changed_.notify_all();
  } else if (!is_first() && frame.size() >= 2 && frame[0] == "gathered") {
    gathered_[frame[1]] = {frame.begin() + 2, frame.end()};
    changed_.notify_all();
  } else if (auto notice = FailureNotice::parse(frame); notice && !is_first()) {
    fail(std::move(*notice));
  }
}

void ControlPlane::look_for_closed() {
  for (const int rank : neighbours()) {
    Peer& gone = peer(rank);
    if (gone.host.empty() || gone.connection.is_open()) continue;
    if (!is_over_) declare_lost(rank, "its process is gone (it was killed, or crashed)");
    gone.was_notified = true;
  }
}

void ControlPlane::look_for_silence(Clock::time_point now) {
  const milliseconds limit = settings_.watch.longest;
  const milliseconds silence =
      limit.count() == 0 ? kSilence : std::clamp<milliseconds>(limit, kShortestSilence, kSilence);
  for (const int rank : neighbours()) {
    const Peer& silent = peer(rank);
    const milliseconds longest = rank == 0 ? silence + kGraceOfFirst : silence;
    if (silent.host.empty() || is_over_ || failure_ || now - silent.last_heard < longest) continue;
    if (is_first() && has_met_) std::fputs(watch_.text(now).c_str(), stderr);
    declare_lost(rank, fmt::format("it sent no heartbeat for {:.0f} seconds (it was stopped, or its host cannot be "
                                   "reached)",
                                   in_seconds(now - silent.last_heard)));
  }
}

void ControlPlane::check_time_of_meeting(Clock::time_point now) {
  if (has_met_ || !is_first() || now - start_ < settings_.longest_meeting) return;
  is_out_of_time_ = true;
  fail({.kind = FailureNotice::Kind::kEnvironment,
        .reason =
            fmt::format("not all of the {} processes came to {} within {:g} seconds: {} missing; look for "
                        "processes that were not started or cannot reach that address",
                        own_.size, own_.point.name, in_seconds(settings_.longest_meeting), text_of_ranks(missing()))});
}

void ControlPlane::print_who_is_awaited(Clock::time_point now) {
  if (!has_met_ && !failure_ && now > next_notice_ && (is_first() || !awaited_.empty())) {
    next_notice_ += settings_.notice_interval;
    const std::string ranks = is_first() ? text_of_ranks(missing()) : awaited_;
    std::vector<std::string> here = hosts();
    std::erase(here, "");
    std::ranges::sort(here);
    here.erase(std::ranges::unique(here).begin(), here.end());
    print_line(fmt::format("waiting for {} of {} at {} ({:.0f} s){}", ranks, own_.size, own_.point.name,
                           in_seconds(now - start_),
                           is_first() ? fmt::format("; hosts that have come: {}", fmt::join(here, ", ")) : ""));
  }
  for (auto& [_, exchange] : exchanges_) {
    if (failure_ || now < exchange.next_notice) continue;
    exchange.next_notice += settings_.notice_interval;
    print_line(exchange.text(own_.size));
  }
}

// "rank 0 waits for ranks 1, 2 in a host exchange". The first rank does not know the members of smaller groups.
std::string ControlPlane::Exchange::text(int world) const {
  std::vector<int> waiting = came, absent;
  std::ranges::sort(waiting);
  for (int rank = 0; rank < world; ++rank) {
    if (!std::ranges::binary_search(waiting, rank)) absent.push_back(rank);
  }
  const std::size_t left = texts.size() - came.size();
  return fmt::format("{} wait{} for {} in a host exchange", text_of_ranks(waiting), waiting.size() == 1 ? "s" : "",
                     left == absent.size() ? text_of_ranks(absent) : fmt::format("{} more of their group", left));
}

// mpirun and torchrun end a job by SIGTERM, and so does a user. If a process has died, its connection is closed and the
// notice of that will arrive; if none arrives in time, the user wanted the end and the signal is obeyed. A program that
// handles SIGTERM itself (TerminationRequest::leave_to_the_program) goes on until it ends.
void ControlPlane::act_on_termination(Clock::time_point now) {
  if (!termination_->came()) return;
  if (!terminated_since_) terminated_since_ = now;
  const bool is_ours = !TerminationRequest::is_left_to_the_program();
  if (is_ours && now - *terminated_since_ > kNotice && !(failure_ && asks_)) termination_->obey();
}

void ControlPlane::end_where_nobody_asks(Clock::time_point now) {
  if (!failure_ || !asks_ || stopping_) return;
  const bool has_time = notified_since_ ? now - *notified_since_ < (is_own_failure_ ? kLeavingAfterOwn : kLeaving)
                                        : now - failed_since_ < (terminated_since_ ? kPatienceTerminated : kPatience);
  if (!has_time) settings_.end_process(failure_->message());
}

bool ControlPlane::has_notified_all() const {
  return std::ranges::all_of(neighbours(),
                             [&](int rank) { return peers_[static_cast<std::size_t>(rank)].was_notified; });
}

void ControlPlane::shut_down() {
  if (!notified_ && !is_over_) return;
  // Late processes still get the reason, unless the meeting's time is over.
  if (is_first() && !has_met_ && failure_ && !is_out_of_time_) {
    const auto end = Clock::now() + std::min<milliseconds>(settings_.longest_meeting, kLateComers);
    while (Clock::now() < end && !has_notified_all()) serve();
  }
  const auto is_open = [&](int rank) { return peer(rank).connection.is_open(); };
  for (const auto end = Clock::now() + kFlush; Clock::now() < end && std::ranges::any_of(neighbours(), is_open);) {
    {
      const std::lock_guard lock(mutex_);
      for (const int rank : neighbours()) {
        if (!peer(rank).connection.has_to_write()) peer(rank).connection.finish_sending();
      }
    }
    serve();
  }
}

}  // namespace teratron

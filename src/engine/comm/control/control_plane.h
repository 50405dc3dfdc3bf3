// ControlPlane of a job of processes: one TCP connection from every process to the first one, used by a thread of its
// own, whether MPI or NCCL moves the tensors. It carries
//   - the meeting: every process says hello to the first; the meeting ends when the last one has come;
//   - heartbeats, one a second or more often (WatchSettings::interval) in both directions, from the hello on, with the
//     rank's place, of which the first rank sees whether the job stands (comm/watch.h);
//   - failure notices: the first rank sends all members the lost rank and the reason;
//   - exchanges of small texts between the hosts of a group (ranks without MPI).
//
// A killed process closes its connection, which is noticed at once. A stopped process, or a host that is cut off, is
// noticed by missing heartbeats, within 7 seconds. A rank's own thread gets the failure as an exception in its next
// call here. If it makes none, in a long computation or a blocking call, or does not end after the exception, the
// control thread ends the process. It also asks the device's channels (NCCL) whether they broke.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/control/listener.h"
#include "comm/control/membership.h"
#include "comm/control/termination.h"
#include "comm/place.h"
#include "comm/watch.h"

namespace teratron {

struct ControlSettings {
  // The meeting fails after this time.
  std::chrono::milliseconds longest_meeting = std::chrono::minutes(5);
  // A caller of the first rank that does not say in this time who it is is dropped.
  std::chrono::milliseconds longest_hello = std::chrono::seconds(5);
  // Processes that wait for others print a line to stderr after this time, again and again.
  std::chrono::milliseconds notice_interval = std::chrono::seconds(5);
  // When a job that stands ends. A stranger's connection can stop MPI so. Its limit, if it is shorter, also counts for
  // heartbeats that do not come.
  WatchSettings watch;
  // Called from the control thread with the message of the failure; does not return.
  std::function<void(const std::string& message)> end_process;
};

class ControlPlane {
 public:
  // Starts to meet the others; returns at once. `listener`: the first rank's, if it is open already.
  ControlPlane(Membership own, ControlSettings settings, Socket listener = {});
  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;
  // Sends queued frames, at most for a second. If the meeting failed before its time was over, the first rank waits up
  // to 10 seconds for late processes and sends them the reason.
  ~ControlPlane();

  // Returns when all have come. UserError: two have the same rank, or other ideas of how many there are;
  // EnvironmentError: a process did not come in time; LostRank.
  void meet();
  // Whether this host has more ranks than cores. A rank that waits then yields its core early. Valid after meet().
  bool crowded() const { return crowded_; }

  Place& place() { return place_; }  // of this process's rank
  void throw_if_failed() const {
    if (has_failed_.load(std::memory_order_relaxed)) throw_failure();
  }
  // For a caller whose messages fail before the reason is known: throws the failure, or returns if none comes within
  // kVerdict. A silent rank is found in this time.
  static constexpr auto kVerdict = std::chrono::seconds(8);
  void await_verdict() const;

  // Reports to all others that this rank has failed.
  void report_failure(const std::string& reason);
  // A rank that fails calls it, within a handler of the exception and before anything is destroyed: reports the reason
  // to all others, unless it is their failure, and aborts the channels. The process ends 10 seconds later at the
  // latest.
  void give_up() noexcept;
  // Reports that this process ends before its rank runs. If it has not found the first rank yet, it looks for it up to
  // half a minute longer.
  void report_early_end(int exit_code);
  // Channels of this rank's device. One that breaks is this rank's failure; those of a rank that ends are aborted.
  void watch_channels(const std::shared_ptr<OpenChannels>& channels);
  // Whether the others expect this rank's end: it has reported its failure, or ends because of another's.
  bool end_is_accounted_for() const { return notified_.load(); }
  // This rank has done its work. Returns when all have: closed connections are no failures from then on.
  void finish();

  // The texts of `size` ranks, by their rank in the group. `key` names the group and the call.
  std::vector<std::string> all_gather(const std::string& key, int group_rank, int size, const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    FrameConnection connection;
    std::string host, activity;  // activity: its place, in its last heartbeat
    Clock::time_point last_heard;
    bool is_done = false, was_notified = false;
  };
  struct Exchange {
    std::vector<std::optional<std::string>> texts;  // by rank in the group
    std::vector<int> came;                          // ranks of the world
    Clock::time_point next_notice;
    std::string text(int world) const;
  };

  // control_thread.cc: the control thread's own.
  void run();
  void serve();  // waits for events, at most kWakeUp, and handles them
  bool open_listener();
  bool join();
  bool call_first_rank(const sockaddr_in& address, std::string& note);
  void wait_for_events();
  void accept_members(Clock::time_point now);
  void admit(Listener::Arrival arrival, const Hello& hello, Clock::time_point now);
  enum class Stranger { kOtherSecret, kContradiction };
  void report_once(Stranger kind, const FrameConnection& connection, const std::string& what);
  void receive_frames(Clock::time_point now);
  void take(int from, const Frame& frame);
  void look_for_closed();
  void look_for_silence(Clock::time_point now);
  void look_for_standstill(Clock::time_point now);
  void look_for_broken_channels();
  void check_time_of_meeting(Clock::time_point now);
  void print_who_is_awaited(Clock::time_point now);
  void act_on_termination(Clock::time_point now);
  void end_where_nobody_asks(Clock::time_point now);
  void shut_down();
  bool has_notified_all() const;

  void wake() const;
  void abort_channels() const;

  // Under the mutex.
  bool is_first() const { return own_.rank == 0; }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  std::vector<int> neighbours() const;  // the ranks that this one is connected to, or waits for
  std::vector<std::string> hosts() const;
  std::vector<int> missing() const;
  void beat(Clock::time_point now);
  std::string activity() const;  // of this rank
  void send_all(const Frame& frame);
  void end_meeting();
  void mark_done(int rank);
  void declare_lost(int rank, const std::string& reason);
  void fail(FailureNotice notice);
  void contribute(int from, const std::string& key, int group_rank, int size, const std::string& text);
  [[noreturn]] void throw_failure() const;
  template <class Ready>
  void wait_until(std::unique_lock<std::mutex>& lock, const Ready& ready);

  const Membership own_;
  const ControlSettings settings_;
  const Clock::time_point start_ = Clock::now();
  const int wake_;  // an eventfd that ends the control thread's poll()
  bool crowded_ = false;

  mutable std::mutex mutex_;  // over what follows
  mutable std::condition_variable changed_;
  std::vector<std::weak_ptr<OpenChannels>> channels_;
  std::vector<Peer> peers_;  // by rank; all but the first rank are connected to the first one alone
  std::optional<Listener> listener_;
  std::string awaited_;          // of the meeting, as the first rank says: "ranks 2, 3"
  bool asks_ = false;            // the rank's own thread has come to the meeting
  bool is_out_of_time_ = false;  // the meeting, which nobody is waited for any more
  bool is_over_ = false;         // all are done
  Clock::time_point next_beat_, last_run_, next_notice_;
  Watch watch_;  // of all ranks, by the first one
  std::set<Stranger> reported_strangers_;
  std::optional<FailureNotice> failure_;
  Clock::time_point failed_since_;
  std::map<std::string, Exchange> exchanges_;                 // of the first rank: those under way
  std::map<std::string, std::vector<std::string>> gathered_;  // done, for this process
  std::optional<Clock::time_point> terminated_since_;
  std::optional<TerminationRequest> termination_;

  Place place_;
  std::atomic<bool> has_met_{false}, has_failed_{false}, stopping_{false};
  mutable std::atomic<bool> notified_{false};                // the rank's own thread has the failure
  mutable std::optional<Clock::time_point> notified_since_;  // under the mutex
  bool is_own_failure_ = false;                              // likewise
  std::thread thread_;
};

// Group of all ranks of a job whose processes have no MPI. Host exchanges go through `control`, which outlives it.
// Tensors lie in device memory and move through its channels (NCCL).
std::unique_ptr<Communicator> make_control_world(ControlPlane& control, int rank, int size);

}  // namespace teratron

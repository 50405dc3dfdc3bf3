// Who of a job of processes is alive. MPI, or a connection, waits for ever for a rank that was stopped, so each process
// has a thread that sends process 0 a datagram every second with what it is doing; process 0 answers, and tells
// everyone when one falls silent, is gone or reports its own failure. A process that hears nothing from process 0 takes
// that one for lost. It all happens beside the transport, over UDP on a port the system picks, and costs nothing worth
// measuring.
//
// A rank is known to be lost within 7 seconds of its last sign of life. The rank's own thread is told where it waits
// (transport.h); where it does not look, in a long computation or inside a call of MPI that blocks, the process is
// ended without it, and so it is where a rank that was told does not leave: its device may wait for the lost one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "comm/process/datagrams.h"
#include "comm/process/termination.h"

namespace teratron {

class Liveness {
 public:
  // Called with the message of a LostRank, from another thread, where the rank did not ask in time; does not return.
  using EndProcess = std::function<void(const std::string& message)>;

  Liveness(int rank, int size, std::string host, EndProcess end_process);  // opens the socket; EnvironmentError
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;
  ~Liveness();

  // How others reach and name this process; everyone's are exchanged and given to start(). `job` keeps strangers out.
  std::string contact() const;
  void start(const std::vector<std::string>& contacts, const std::string& job);

  void set_activity(std::string_view activity);
  void throw_if_lost() const {
    if (is_lost_.load(std::memory_order_relaxed)) throw_lost();
  }
  // For whoever notices that messages fail before it is known which rank is gone: throws LostRank as soon as that is
  // known, and returns where it is not known after `longest`. Those that are silent are known after kVerdict.
  static constexpr auto kVerdict = std::chrono::seconds(8);
  void await_verdict(std::chrono::milliseconds longest) const;
  // A connection with `rank` failed: LostRank, of that one where nobody is known to be lost. All are told.
  [[noreturn]] void throw_unreachable(int rank, const std::string& reason);
  // Whether there are more ranks on this host than cores: then whoever waits leaves its core to others.
  bool crowded() const { return crowded_; }
  // This rank has failed: returns when everyone has had the time to hear of it.
  void report_failure(const std::string& reason);
  // This rank has done its work. Called before it meets the others for the last time: from then on, whoever closes its
  // socket has left in good order.
  void expect_farewells();

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    std::string host, activity;
    std::vector<sockaddr_in> addresses;  // where it may be reached, until it is heard: then where that came from
    bool heard = false;
    Clock::time_point last_heard;
  };
  struct Lost {
    int rank;
    std::string host, activity, reason;
    Clock::time_point known_since;
  };

  [[noreturn]] void throw_lost() const;
  void run();
  void receive_all(Clock::time_point now);
  void take(const Datagram& datagram, Clock::time_point now);
  void take_refusal(const sockaddr_in& from);
  void beat() const;
  void look_for_silence(Clock::time_point now);
  void act_on_termination(Clock::time_point now);
  void end_where_nobody_asks(Clock::time_point now) const;
  void declare_lost(int rank, const std::string& reason);
  void tell_of_lost() const;  // everyone, from process 0
  void tell_of_lost_to(const Peer& peer) const;
  void send(const Peer& peer, const std::vector<std::string>& fields) const;

  const int rank_, size_;
  const std::string host_;
  const EndProcess end_process_;
  const DatagramSocket socket_;
  std::optional<TerminationRequest> termination_;  // from start() on
  std::string job_;
  bool crowded_ = false;
  mutable std::mutex mutex_;  // over what follows
  std::vector<Peer> peers_;
  std::string activity_;
  std::optional<Lost> lost_;
  std::optional<Clock::time_point> terminated_since_;
  bool expects_farewells_ = false;

  std::atomic<bool> is_lost_{false}, stopping_{false};
  mutable std::atomic<bool> told_{false};                // the rank's own thread has been told
  mutable std::optional<Clock::time_point> told_since_;  // of another's loss; under the mutex
  std::thread thread_;
};

}  // namespace teratron

// Who of an MPI job is alive. MPI itself waits for ever for a rank that was stopped, so each process has a thread that
// sends process 0 a datagram every second with what it is doing; process 0 answers, and tells everyone when one falls
// silent or reports its own failure. A process that hears nothing from process 0 takes that one for lost. It all
// happens beside MPI, over UDP on a port the system picks, and costs nothing worth measuring.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace teratron {

class Liveness {
 public:
  Liveness(int rank, int size, std::string host);  // opens the socket; EnvironmentError where that is refused
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
  // This rank has failed: returns when everyone has had the time to hear of it.
  void report_failure(const std::string& reason);

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
  };

  [[noreturn]] void throw_lost() const;
  void run();
  void receive_all();
  void take(const std::vector<std::string>& fields, const sockaddr_in& from);
  void beat();
  void look_for_silence();
  void declare_lost(int rank, const std::string& reason);
  void tell_of_lost();
  void send(const Peer& peer, const std::vector<std::string>& fields) const;

  const int rank_, size_;
  const std::string host_;
  int socket_ = -1;
  std::string job_;
  mutable std::mutex mutex_;  // over what follows
  std::vector<Peer> peers_;
  std::string activity_;
  std::optional<Lost> lost_;
  std::atomic<bool> is_lost_{false}, stopping_{false};
  std::thread thread_;
};

}  // namespace teratron

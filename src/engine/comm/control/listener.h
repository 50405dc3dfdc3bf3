// The port of the first rank. A caller is admitted when its first frame has arrived whole; callers that send anything
// else, or nothing, are dropped, so that strangers and port scans delay no process.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/control/frame.h"

namespace teratron {

class Listener {
 public:
  struct Arrival {
    FrameConnection connection;
    Frame hello;
  };

  // A caller that has said nothing after `longest_hello` is dropped.
  explicit Listener(Socket socket, std::chrono::milliseconds longest_hello = std::chrono::seconds(5))
      : socket_(std::move(socket)), longest_hello_(longest_hello) {}
  std::uint16_t port() const { return port_of(socket_); }
  void append_to(std::vector<pollfd>& waits) const;
  std::optional<Arrival> next();  // the next caller whose frame has arrived; does not block

 private:
  struct Caller {
    FrameConnection connection;
    std::chrono::steady_clock::time_point since;
  };
  Socket socket_;
  std::chrono::milliseconds longest_hello_;
  std::vector<Caller> callers_;  // the longest here first
};

}  // namespace teratron

// What processes tell each other before there is a job: a few texts at a time, each frame with a mark at its beginning
// that strangers do not send.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "comm/tcp/socket.h"

namespace teratron {

using Frame = std::vector<std::string>;

constexpr std::chrono::milliseconds kAnswer{5000};  // an answer takes no longer where there is one
constexpr std::chrono::milliseconds kLook{100};     // between two looks for those who left, or are still to come

// Reads one frame and no byte more: what follows on a connection may be for others.
class FrameReader {
 public:
  enum class State { kIncomplete, kComplete, kRefused };  // refused: closed, too long, or not a frame

  explicit FrameReader(std::size_t longest) : longest_(longest) {}
  State read(const Socket& socket);  // what has come so far; waits for nothing
  Frame frame() const;               // once it is complete

 private:
  bool has_mark() const;
  std::size_t length() const;

  std::size_t longest_;
  std::string bytes_;
};

// Whether it went off within `longest`.
bool send_frame(const Socket& socket, const Frame& frame, std::chrono::milliseconds longest);
// None where none came within `longest`, or something else did.
std::optional<Frame> receive_frame(const Socket& socket, std::chrono::milliseconds longest);

// Where processes knock. Strangers, who send something else or nothing, are let go and keep nobody waiting.
class Door {
 public:
  struct Guest {
    Socket socket;
    Frame frame;
  };

  explicit Door(Socket listener) : listener_(std::move(listener)) {}
  std::uint16_t port() const { return port_of(listener_); }
  // The next one whose frame has come.
  std::optional<Guest> wait_for_guest(std::chrono::milliseconds longest);

 private:
  struct Caller {
    Socket socket;
    FrameReader reader;
    std::chrono::steady_clock::time_point since;
  };
  std::optional<Guest> look();

  Socket listener_;
  std::vector<Caller> callers_;
};

}  // namespace teratron

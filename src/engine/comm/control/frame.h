// Messages of the control plane. A frame is a list of texts; on the wire it is a magic word, its length and the texts,
// each after its own length (u32, little endian).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "comm/control/socket.h"

namespace teratron {

using Frame = std::vector<std::string>;

// Sends and receives frames over one TCP connection. Nothing here blocks. The connection closes on the first error, and
// when the peer sends anything but a frame or one longer than the limit.
class FrameConnection {
 public:
  static constexpr std::size_t kLongestHello = 1 << 16, kLongest = std::size_t{1} << 30;  // bytes

  FrameConnection() = default;  // closed
  explicit FrameConnection(Socket socket, std::size_t longest = kLongestHello)
      : socket_(std::move(socket)), longest_(longest) {}

  void send(const Frame& frame);   // queues the frame and flushes
  void flush();                    // writes what the system accepts now
  std::optional<Frame> receive();  // the next whole frame, if it has arrived
  void finish_sending();           // closes this direction: the peer reads to the end
  void close() { socket_ = Socket(); }
  void allow_long_frames() { longest_ = kLongest; }

  bool is_open() const { return static_cast<bool>(socket_); }
  bool has_to_write() const { return is_open() && !outgoing_.empty(); }
  const Socket& socket() const { return socket_; }

 private:
  std::size_t incoming_length() const;
  bool is_frame_so_far() const;
  Frame take_incoming();

  Socket socket_;
  std::size_t longest_ = kLongestHello;
  std::string outgoing_, incoming_;
};

}  // namespace teratron

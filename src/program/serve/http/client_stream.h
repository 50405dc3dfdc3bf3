// ClientStream: the connection of a client, which may send its next request before the answer to an earlier one.
#pragma once

#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace teratron {

// Bounds of a request: the client may neither send without end nor for ever.
struct RequestBounds {
  std::size_t head_bytes = std::size_t{64} << 10, body_bytes = 0;  // as sent, chunks' sizes included
  std::chrono::seconds head_time{10}, body_time{120};              // of the whole head, of the whole body
  std::chrono::seconds write_time{10};                             // that the client may take to read a piece
};

// Stream of a connection. The library makes a stream of its own for each request, which loses bytes of the next one.
class ClientStream final : public httplib::Stream {
 public:
  ClientStream(socket_t socket, const RequestBounds& bounds) : socket_(socket), bounds_(bounds) {}

  // Waits until a request begins, after empty lines, at most `most` seconds. Calls `ends` ten times a second, and stops
  // waiting when it returns true. False: none came.
  bool wait_for_request(std::chrono::seconds most, const std::function<bool()>& ends);
  void begin_head() { begin_part(bounds_.head_bytes, bounds_.head_time); }
  void begin_body() { begin_part(bounds_.body_bytes, bounds_.body_time); }
  // Reads for a moment after the last answer what the client still sends: closing a connection with unread bytes resets
  // it, and the client may lose the answer.
  void drain();

  bool is_readable() const override { return has_bytes() || waits_for(POLLIN, time_left()); }
  bool is_writable() const override;  // and the client is still there
  ssize_t read(char* to, std::size_t most) override;
  ssize_t write(const char* from, std::size_t count) override;
  void get_remote_ip_and_port(std::string&, int&) const override {}  // nobody asks
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool has_bytes() const { return begin_ < bytes_.size(); }
  void begin_part(std::size_t most, std::chrono::seconds time);
  std::chrono::milliseconds time_left() const;
  bool waits_for(short event, std::chrono::milliseconds most) const;
  ssize_t receive();  // when all was read; 0: the client has ended the connection

  const socket_t socket_;
  const RequestBounds bounds_;
  std::string bytes_;      // received
  std::size_t begin_ = 0;  // the first of them that was not read
  std::size_t left_ = 0;   // bytes that this part of the request may still have
  Clock::time_point deadline_;
};

}  // namespace teratron

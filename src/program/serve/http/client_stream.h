// ClientStream: the connection of a client, which may send its next request before the answer to an earlier one.
#pragma once

#include <httplib.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace teratron {

// Bounds of a request and its answer: the client may neither send without end nor keep the server waiting for ever.
struct RequestBounds {
  std::size_t head_bytes = std::size_t{64} << 10, body_bytes = 0;  // as sent, chunks' sizes included
  std::chrono::seconds head_time{10}, body_time{120};              // of the whole head, of the whole body
  std::chrono::seconds write_time{10};                             // that the client may take to read a piece
  // Time that a whole answer may wait for the client; time left of it once the server ends.
  std::chrono::milliseconds answer_time{600'000}, end_time{2'000};
};

// Stream of a connection. The library makes a stream of its own for each request, which loses bytes of the next one.
class ClientStream final : public httplib::Stream {
 public:
  // Every wait calls `ends` ten times a second. Once it returns true, nothing more is read, and end_time is left to
  // write in.
  ClientStream(socket_t socket, const RequestBounds& bounds, std::function<bool()> ends)
      : socket_(socket), bounds_(bounds), ends_(std::move(ends)) {}

  // Waits until a request begins, after empty lines, at most `most` seconds. False: none came, or the server ends.
  bool wait_for_request(std::chrono::seconds most);
  void begin_head() {
    answer_left_ = bounds_.answer_time;
    begin_part(bounds_.head_bytes, bounds_.head_time);
  }
  void begin_body() { begin_part(bounds_.body_bytes, bounds_.body_time); }
  // Reads for a moment after the last answer what the client still sends: closing a connection with unread bytes resets
  // it, and the client may lose the answer.
  void drain();

  bool is_readable() const override { return has_bytes() || waits_for(POLLIN, {}); }
  // Whether the client is still there: it has not ended its own side of the connection. write() waits.
  bool is_writable() const override;
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
  bool waits_to_read() const;
  bool waits_to_write();
  ssize_t receive();  // when all was read; 0: the client has ended the connection

  const socket_t socket_;
  const RequestBounds bounds_;
  const std::function<bool()> ends_;
  std::string bytes_;      // received
  std::size_t begin_ = 0;  // the first of them that was not read
  std::size_t left_ = 0;   // bytes that this part of the request may still have
  Clock::time_point deadline_;
  Clock::duration answer_left_{};  // time that the answer may still wait for the client
};

}  // namespace teratron

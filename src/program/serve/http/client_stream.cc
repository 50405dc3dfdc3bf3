#include "serve/http/client_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace teratron {
namespace {

constexpr std::size_t kReceived = std::size_t{16} << 10;  // bytes at a time
constexpr std::chrono::milliseconds kLookForEnd{100};
constexpr auto kDrain = std::chrono::seconds(2);

}  // namespace

void ClientStream::begin_part(std::size_t most, std::chrono::seconds time) {
  left_ = most;
  deadline_ = Clock::now() + time;
}

std::chrono::milliseconds ClientStream::time_left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

bool ClientStream::waits_for(short event, std::chrono::milliseconds most) const {
  pollfd polled{.fd = socket_, .events = event, .revents = 0};
  int count = 0;
  do count = ::poll(&polled, 1, static_cast<int>(most.count()));
  while (count < 0 && errno == EINTR);
  return count > 0;
}

bool ClientStream::waits_to_read() const {
  while (!ends_() && time_left() > time_left().zero()) {
    if (waits_for(POLLIN, std::min(kLookForEnd, time_left()))) return true;
  }
  return false;
}

bool ClientStream::waits_to_write() {
  Clock::duration piece_left = bounds_.write_time;
  while (true) {
    if (ends_()) answer_left_ = std::min<Clock::duration>(answer_left_, bounds_.end_time);
    const Clock::duration left = std::max(std::min(piece_left, answer_left_), Clock::duration::zero());
    const auto most = std::min(kLookForEnd, std::chrono::ceil<std::chrono::milliseconds>(left));
    const Clock::time_point begin = Clock::now();
    const bool is_ready = waits_for(POLLOUT, most);
    const Clock::duration waited = Clock::now() - begin;
    piece_left -= waited;
    answer_left_ -= waited;
    if (is_ready || left == left.zero()) return is_ready;
  }
}

bool ClientStream::wait_for_request(std::chrono::seconds most) {
  deadline_ = Clock::now() + most;
  do {
    begin_ = std::min(bytes_.find_first_not_of("\r\n", begin_), bytes_.size());  // RFC 9112, section 2.2
    if (has_bytes()) return !ends_();
  } while (waits_to_read() && receive() > 0);
  return false;
}

ssize_t ClientStream::receive() {
  bytes_.resize(kReceived);
  const ssize_t count = ::recv(socket_, bytes_.data(), bytes_.size(), 0);
  bytes_.resize(static_cast<std::size_t>(std::max<ssize_t>(0, count)));
  begin_ = 0;
  return count;
}

bool ClientStream::is_writable() const {
  // Reading ahead would not do: bytes of the next request may come before the end.
  return !waits_for(POLLRDHUP, {});
}

ssize_t ClientStream::read(char* to, std::size_t most) {
  if (left_ == 0) return -1;
  if (!has_bytes()) {
    if (!waits_to_read()) return -1;
    if (const ssize_t count = receive(); count <= 0) return count;
  }
  const std::size_t count = std::min({most, left_, bytes_.size() - begin_});
  bytes_.copy(to, count, begin_);
  begin_ += count;
  left_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t ClientStream::write(const char* from, std::size_t count) {
  if (!waits_to_write()) return -1;
  const ssize_t sent = ::send(socket_, from, count, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) ? 0 : sent;
}

void ClientStream::drain() {
  ::shutdown(socket_, SHUT_WR);
  begin_part(bounds_.body_bytes, kDrain);
  bytes_.resize(kReceived);
  while (left_ > 0 && waits_for(POLLIN, time_left())) {
    const ssize_t count = ::recv(socket_, bytes_.data(), bytes_.size(), MSG_DONTWAIT);
    if (count <= 0) return;
    left_ -= std::min(left_, static_cast<std::size_t>(count));
  }
}

}  // namespace teratron

#include "serve/http/client_stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace teratron {
namespace {

constexpr std::size_t kReceived = std::size_t{16} << 10;  // bytes at a time
constexpr auto kLookForEnd = std::chrono::milliseconds(100);
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

bool ClientStream::wait_for_request(std::chrono::seconds most, const std::function<bool()>& ends) {
  const Clock::time_point end = Clock::now() + most;
  while (!ends() && Clock::now() < end) {
    begin_ = std::min(bytes_.find_first_not_of("\r\n", begin_), bytes_.size());  // RFC 9112, section 2.2
    if (has_bytes()) return true;
    if (waits_for(POLLIN, kLookForEnd) && receive() <= 0) return false;
  }
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
  if (!waits_for(POLLOUT, bounds_.write_time)) return false;
  if (has_bytes()) return true;
  char byte = 0;
  const ssize_t count = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

ssize_t ClientStream::read(char* to, std::size_t most) {
  if (left_ == 0) return -1;
  if (!has_bytes()) {
    if (!waits_for(POLLIN, time_left())) return -1;
    if (const ssize_t count = receive(); count <= 0) return count;
  }
  const std::size_t count = std::min({most, left_, bytes_.size() - begin_});
  bytes_.copy(to, count, begin_);
  begin_ += count;
  left_ -= count;
  return static_cast<ssize_t>(count);
}

ssize_t ClientStream::write(const char* from, std::size_t count) {
  if (!waits_for(POLLOUT, bounds_.write_time)) return -1;
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

#include "comm/control/frame.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace teratron {
namespace {

constexpr std::string_view kMagic = "teratron";
constexpr std::size_t kHeader = kMagic.size() + sizeof(std::uint32_t);
constexpr std::size_t kReadAtOnce = 1 << 16;

bool may_come_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void append_number(std::string& text, std::size_t number) {
  const auto value = static_cast<std::uint32_t>(number);
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::size_t number_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  if (at + sizeof(value) <= text.size()) std::memcpy(&value, text.data() + at, sizeof(value));
  return value;
}

}  // namespace

void FrameConnection::send(const Frame& frame) {
  if (!is_open()) return;
  std::size_t length = 0;
  for (const std::string& text : frame) length += sizeof(std::uint32_t) + text.size();
  outgoing_ += kMagic;
  append_number(outgoing_, length);
  for (const std::string& text : frame) {
    append_number(outgoing_, text.size());
    outgoing_ += text;
  }
  flush();
}

void FrameConnection::flush() {
  std::size_t sent = 0;
  while (is_open() && sent < outgoing_.size()) {
    const ssize_t count =
        ::send(socket_.get(), outgoing_.data() + sent, outgoing_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (may_come_later(errno)) {
      break;
    } else {
      // receive() closes: the peer's last bytes are still to be read.
      sent = outgoing_.size();
    }
  }
  outgoing_.erase(0, sent);
}

void FrameConnection::finish_sending() {
  flush();
  if (is_open()) ::shutdown(socket_.get(), SHUT_WR);
}

std::size_t FrameConnection::incoming_length() const {
  return incoming_.size() < kHeader ? 0 : number_at(incoming_, kMagic.size());
}

bool FrameConnection::is_frame_so_far() const {
  const std::string_view start = std::string_view(incoming_).substr(0, kMagic.size());
  return start == kMagic.substr(0, start.size()) && incoming_length() <= longest_;
}

std::optional<Frame> FrameConnection::receive() {
  while (is_open()) {
    const std::size_t whole = kHeader + incoming_length(), old = incoming_.size();
    if (old == whole) return take_incoming();
    incoming_.resize(std::min(whole, old + kReadAtOnce));
    const ssize_t count = ::recv(socket_.get(), incoming_.data() + old, incoming_.size() - old, MSG_DONTWAIT);
    const int error = errno;
    incoming_.resize(old + static_cast<std::size_t>(std::max<ssize_t>(0, count)));
    if (count < 0 && may_come_later(error)) return std::nullopt;
    if (count <= 0 || !is_frame_so_far()) close();
  }
  return std::nullopt;
}

Frame FrameConnection::take_incoming() {
  Frame frame;
  for (std::size_t at = kHeader; at < incoming_.size();) {
    const std::size_t length = number_at(incoming_, at);
    at += sizeof(std::uint32_t);
    if (at > incoming_.size()) break;
    frame.push_back(incoming_.substr(at, length));
    at += length;
  }
  incoming_.clear();
  return frame;
}

}  // namespace teratron

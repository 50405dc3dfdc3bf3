#include "comm/tcp/frame.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A frame: the mark, the bytes that follow as u32, and each text with its length as u32 before it.
constexpr std::string_view kMark = "teratron";
constexpr std::size_t kHeader = kMark.size() + sizeof(std::uint32_t);
constexpr std::size_t kLongestAtDoor = 1 << 16, kLongestAnswer = std::size_t{1} << 30;  // bytes
constexpr auto kFramePatience = std::chrono::seconds(10);  // with a caller who does not finish its frame
constexpr std::size_t kMostCallers = 4096;

milliseconds until(Clock::time_point end) {
  return std::chrono::duration_cast<milliseconds>(end - Clock::now()) + milliseconds(1);
}

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

bool FrameReader::has_mark() const {
  return std::string_view(bytes_).substr(0, kMark.size()) == kMark.substr(0, bytes_.size());
}

std::size_t FrameReader::length() const { return bytes_.size() < kHeader ? 0 : number_at(bytes_, kMark.size()); }

FrameReader::State FrameReader::read(const Socket& socket) {
  while (true) {
    const std::size_t whole = kHeader + length(), old = bytes_.size();
    if (old == whole) return State::kComplete;
    bytes_.resize(std::min(whole, old + kLongestAtDoor));
    const ssize_t count = ::recv(socket.get(), bytes_.data() + old, bytes_.size() - old, MSG_DONTWAIT);
    const int error = errno;
    bytes_.resize(old + static_cast<std::size_t>(std::max<ssize_t>(0, count)));
    if (count < 0) {
      const bool may_come = error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
      return may_come ? State::kIncomplete : State::kRefused;
    }
    if (count == 0 || !has_mark() || length() > longest_) return State::kRefused;
  }
}

Frame FrameReader::frame() const {
  Frame frame;
  for (std::size_t at = kHeader; at < bytes_.size();) {
    const std::size_t text = number_at(bytes_, at);
    at += sizeof(std::uint32_t);
    if (at > bytes_.size()) break;
    frame.push_back(bytes_.substr(at, text));
    at += text;
  }
  return frame;
}

bool send_frame(const Socket& socket, const Frame& frame, milliseconds longest) {
  std::string texts;
  for (const std::string& text : frame) {
    append_number(texts, text.size());
    texts += text;
  }
  std::string bytes(kMark);
  append_number(bytes, texts.size());
  bytes += texts;
  const auto end = Clock::now() + longest;
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      return false;
    } else if (Clock::now() > end || !wait_for(socket, POLLOUT, until(end))) {
      return false;
    }
  }
  return true;
}

std::optional<Frame> receive_frame(const Socket& socket, milliseconds longest) {
  FrameReader reader(kLongestAnswer);
  for (const auto end = Clock::now() + longest; Clock::now() < end;) {
    wait_for(socket, POLLIN, until(end));
    const FrameReader::State state = reader.read(socket);
    if (state == FrameReader::State::kComplete) return reader.frame();
    if (state == FrameReader::State::kRefused) break;
  }
  return std::nullopt;
}

std::optional<Door::Guest> Door::wait_for_guest(milliseconds longest) {
  const auto end = Clock::now() + longest;
  while (true) {
    if (std::optional<Guest> guest = look()) return guest;
    if (Clock::now() > end) return std::nullopt;
    std::vector<pollfd> waits = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const Caller& caller : callers_) waits.push_back({.fd = caller.socket.get(), .events = POLLIN, .revents = 0});
    ::poll(waits.data(), waits.size(), static_cast<int>(std::max<milliseconds::rep>(0, until(end).count())));
  }
}

std::optional<Door::Guest> Door::look() {
  while (callers_.size() < kMostCallers) {
    Socket socket = accept_from(listener_);
    if (!socket) break;
    callers_.push_back({std::move(socket), FrameReader(kLongestAtDoor), Clock::now()});
  }
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    const FrameReader::State state = caller->reader.read(caller->socket);
    if (state == FrameReader::State::kIncomplete && Clock::now() - caller->since < kFramePatience) {
      ++caller;
      continue;
    }
    std::optional<Guest> guest;
    if (state == FrameReader::State::kComplete) guest = {std::move(caller->socket), caller->reader.frame()};
    caller = callers_.erase(caller);
    if (guest) return guest;
  }
  return std::nullopt;
}

}  // namespace teratron

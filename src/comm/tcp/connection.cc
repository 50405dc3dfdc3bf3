#include "comm/tcp/connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace teratron {
namespace {

constexpr std::size_t kMostParts = 32;  // of one call
// Reading goes on to the next connection after so many bytes.
constexpr std::size_t kTurn = std::size_t{4} << 20;

bool may_pass(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

std::size_t size_of(const Transfer& message) {
  return sizeof(Envelope) + static_cast<std::size_t>(message.envelope.bytes);
}

}  // namespace

void Connection::send(Transfer& message) {
  outgoing_.push_back(&message);
  if (outgoing_.size() == 1) write_some();
}

void Connection::receive(Transfer& message) {
  const auto early =
      std::ranges::find_if(early_, [&](const Early& e) { return e.message.envelope.matches(message.envelope); });
  if (early == early_.end()) return expected_.push_back(&message);
  check_equal(early->message.envelope.bytes, message.envelope.bytes, "bytes of a message");
  std::memcpy(message.data, early->bytes.get(), static_cast<std::size_t>(early->message.moved));
  message.moved = early->message.moved;
  message.is_done = early->message.is_done;
  if (incoming_ == &early->message) incoming_ = &message;  // the rest goes straight to its place
  early_.erase(early);
}

bool Connection::write_some() {
  bool moved = false;
  while (has_to_write()) {
    std::array<iovec, kMostParts> parts{};
    std::size_t count = 0, bytes = 0;
    for (auto at = outgoing_.begin(); at != outgoing_.end() && count + 2 <= kMostParts; ++at) {
      Transfer& message = **at;
      std::size_t begin = static_cast<std::size_t>(message.moved);
      if (begin < sizeof(Envelope)) {
        parts[count++] = {reinterpret_cast<std::byte*>(&message.envelope) + begin, sizeof(Envelope) - begin};
        begin = sizeof(Envelope);
      }
      parts[count++] = {message.data + (begin - sizeof(Envelope)), size_of(message) - begin};
      bytes += size_of(message) - static_cast<std::size_t>(message.moved);
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t written = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0 && !may_pass(errno)) broken_ = true;
    if (written <= 0) break;
    moved = true;
    take_written(static_cast<std::size_t>(written));
    if (static_cast<std::size_t>(written) < bytes) break;  // the system has no more room
  }
  return moved;
}

void Connection::take_written(std::size_t count) {
  while (count > 0) {
    Transfer& message = *outgoing_.front();
    const std::size_t part = std::min(count, size_of(message) - static_cast<std::size_t>(message.moved));
    message.moved += static_cast<std::int64_t>(part);
    count -= part;
    if (static_cast<std::size_t>(message.moved) < size_of(message)) return;
    message.is_done = true;
    outgoing_.pop_front();
  }
}

// A payload is read together with the envelope after it. Before one is kept that nobody has asked for, the rank may
// find that it has what it waits for, and ask.
bool Connection::read_some() {
  std::size_t moved = 0;
  while (moved < kTurn && !broken_) {
    if (envelope_read_ == sizeof(Envelope) && !begin_payload(moved == 0)) break;
    std::array<iovec, 2> parts{};
    std::size_t count = 0, bytes = 0;
    if (incoming_ != nullptr) {
      bytes = static_cast<std::size_t>(envelope_.bytes - incoming_->moved);
      parts[count++] = {incoming_->data + incoming_->moved, bytes};
    }
    Envelope next;
    auto* const rest = incoming_ != nullptr ? reinterpret_cast<std::byte*>(&next)
                                            : reinterpret_cast<std::byte*>(&envelope_) + envelope_read_;
    const std::size_t missing = incoming_ != nullptr ? sizeof(Envelope) : sizeof(Envelope) - envelope_read_;
    parts[count++] = {rest, missing};
    const ssize_t read = ::readv(socket_.get(), parts.data(), static_cast<int>(count));
    if (read == 0 || (read < 0 && !may_pass(errno))) broken_ = true;
    if (read <= 0) break;
    moved += static_cast<std::size_t>(read);
    if (static_cast<std::size_t>(read) < bytes) {
      incoming_->moved += read;
      break;  // nothing more has come
    }
    if (incoming_ != nullptr) {
      incoming_->moved = envelope_.bytes;
      incoming_->is_done = true;
      incoming_ = nullptr;
      envelope_ = next;
      envelope_read_ = 0;
    }
    envelope_read_ += static_cast<std::size_t>(read) - bytes;
    if (envelope_read_ < sizeof(Envelope)) break;
  }
  return moved > 0;
}

bool Connection::begin_payload(bool may_keep) {
  check(envelope_.bytes > 0, "a message is not empty");
  const auto expected =
      std::ranges::find_if(expected_, [&](const Transfer* message) { return message->envelope.matches(envelope_); });
  if (expected != expected_.end()) {
    incoming_ = *expected;
    expected_.erase(expected);
    check_equal(envelope_.bytes, incoming_->envelope.bytes, "bytes of a message");
    envelope_read_ = 0;
    return true;
  }
  if (!may_keep) return false;
  envelope_read_ = 0;
  early_.push_back({{.envelope = envelope_},
                    std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(envelope_.bytes))});
  incoming_ = &early_.back().message;
  incoming_->data = early_.back().bytes.get();
  return true;
}

void Connection::give_up() {
  broken_ = true;
  outgoing_.clear();
  expected_.clear();
  incoming_ = nullptr;
}

}  // namespace teratron

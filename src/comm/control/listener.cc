#include "comm/control/listener.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kHelloTimeout = std::chrono::seconds(5);
constexpr std::size_t kMostCallers = 256;  // at a time; the system queues the others

}  // namespace

void Listener::append_to(std::vector<pollfd>& waits) const {
  // A full house is not polled for more: the listening socket would stay ready.
  const auto events = static_cast<short>(callers_.size() < kMostCallers ? POLLIN : 0);
  waits.push_back({.fd = socket_.get(), .events = events, .revents = 0});
  for (const Caller& caller : callers_) {
    waits.push_back({.fd = caller.connection.socket().get(), .events = POLLIN, .revents = 0});
  }
}

std::optional<Listener::Arrival> Listener::next() {
  while (callers_.size() < kMostCallers) {
    Socket socket = accept_from(socket_);
    if (!socket) break;
    callers_.push_back({FrameConnection(std::move(socket)), Clock::now()});
  }
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    std::optional<Frame> hello = caller->connection.receive();
    if (hello) {
      Arrival arrival{std::move(caller->connection), std::move(*hello)};
      callers_.erase(caller);
      return arrival;
    }
    const bool is_dropped = !caller->connection.is_open() || Clock::now() - caller->since > kHelloTimeout;
    caller = is_dropped ? callers_.erase(caller) : caller + 1;
  }
  return std::nullopt;
}

}  // namespace teratron

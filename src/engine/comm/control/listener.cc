#include "comm/control/listener.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostCallers = 256;  // without a hello yet
constexpr int kMostAtOnce = 4096;          // so that a flood of callers does not keep the control thread here

}  // namespace

void Listener::append_to(std::vector<pollfd>& waits) const {
  waits.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
  for (const Caller& caller : callers_) {
    waits.push_back({.fd = caller.connection.socket().get(), .events = POLLIN, .revents = 0});
  }
}

// A member sends its hello as soon as it is connected. So if there are too many callers, the one that has been silent
// the longest is dropped: however many strangers connect, they keep no member out.
std::optional<Listener::Arrival> Listener::next() {
  for (int accepted = 0; accepted < kMostAtOnce; ++accepted) {
    Socket socket = accept_from(socket_);
    if (!socket) break;
    FrameConnection connection(std::move(socket));
    if (std::optional<Frame> hello = connection.receive()) return Arrival{std::move(connection), std::move(*hello)};
    if (!connection.is_open()) continue;
    if (callers_.size() == kMostCallers) callers_.erase(callers_.begin());
    callers_.push_back({std::move(connection), Clock::now()});
  }
  for (auto caller = callers_.begin(); caller != callers_.end();) {
    std::optional<Frame> hello = caller->connection.receive();
    if (hello) {
      Arrival arrival{std::move(caller->connection), std::move(*hello)};
      callers_.erase(caller);
      return arrival;
    }
    const bool is_dropped = !caller->connection.is_open() || Clock::now() - caller->since > longest_hello_;
    caller = is_dropped ? callers_.erase(caller) : caller + 1;
  }
  return std::nullopt;
}

}  // namespace teratron

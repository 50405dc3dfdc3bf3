#include "emulated_gpu/nccl/link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

namespace teratron::fake_nccl {
namespace {

constexpr int kLook = 5;  // milliseconds after which a wait looks whether its group was aborted
constexpr std::uint64_t kHeader = sizeof(std::uint64_t);

struct Address {
  explicit Address(const std::string& name) : length(offsetof(sockaddr_un, sun_path) + 1 + name.size()) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());  // after a zero: the abstract namespace
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr_un address{};
  std::size_t length;
};

bool is_ready(int socket, short events) {
  pollfd look = {.fd = socket, .events = events, .revents = 0};
  return ::poll(&look, 1, kLook) > 0;
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

End move_whole(Transfer transfer, std::uint64_t bytes, const std::atomic<bool>& aborted) {
  const short events = transfer.sends ? POLLOUT : POLLIN;
  for (std::uint64_t moved = 0; moved < bytes;) {
    if (aborted) return End::kAborted;
    if (!is_ready(transfer.socket, events)) continue;
    std::byte* const at = transfer.memory + moved;
    const ssize_t some = transfer.sends ? ::send(transfer.socket, at, bytes - moved, MSG_DONTWAIT | MSG_NOSIGNAL)
                                        : ::recv(transfer.socket, at, bytes - moved, MSG_DONTWAIT);
    if (some == 0 || (some < 0 && !would_wait())) return End::kGone;
    if (some > 0) moved += static_cast<std::uint64_t>(some);
  }
  return End::kDone;
}

}  // namespace

int listen_at(const std::string& name) {
  const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Address address(name);
  if (::bind(listener, address.get(), static_cast<socklen_t>(address.length)) == 0 && ::listen(listener, 64) == 0) {
    return listener;
  }
  ::close(listener);
  return -1;
}

int connect_to(const std::string& name, const std::atomic<bool>& aborted) {
  const Address address(name);
  while (!aborted) {
    const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(socket, address.get(), static_cast<socklen_t>(address.length)) == 0) return socket;
    ::close(socket);
    std::this_thread::sleep_for(std::chrono::milliseconds(kLook));
  }
  return -1;
}

int accept_from(int listener, const std::atomic<bool>& aborted) {
  while (!aborted) {
    if (is_ready(listener, POLLIN)) return ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  }
  return -1;
}

End write_all(int socket, const void* from, std::size_t bytes, const std::atomic<bool>& aborted) {
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(from));
  return move_whole({.socket = socket, .sends = true, .memory = memory, .bytes = bytes}, bytes, aborted);
}

End read_all(int socket, void* to, std::size_t bytes, const std::atomic<bool>& aborted) {
  return move_whole({.socket = socket, .sends = false, .memory = static_cast<std::byte*>(to), .bytes = bytes}, bytes,
                    aborted);
}

// Bytes begin to end of the message are at values.
End Transfer::move_values(std::byte* values, std::uint64_t begin, std::uint64_t end, bool writes) {
  while (moved >= begin && moved < end) {
    std::byte* const at = values + (moved - begin);
    const ssize_t some = writes ? ::send(socket, at, end - moved, MSG_DONTWAIT | MSG_NOSIGNAL)
                                : ::recv(socket, at, end - moved, MSG_DONTWAIT);
    if (some < 0 && would_wait()) return End::kDone;
    if (some <= 0) return End::kGone;
    moved += static_cast<std::uint64_t>(some);
  }
  return End::kDone;
}

End Transfer::move() {
  if (sends) size = bytes;
  const std::uint64_t end = kHeader + bytes;
  std::byte answer{};
  if (const End header = move_values(reinterpret_cast<std::byte*>(&size), 0, kHeader, sends); header != End::kDone) {
    return header;
  }
  if (moved >= kHeader && size != bytes) return End::kOtherSize;
  if (const End values = move_values(memory, kHeader, end, sends); values != End::kDone) return values;
  const End last = move_values(&answer, end, end + 1, !sends);
  is_done = moved == end + 1;
  return last;
}

short Transfer::awaited_events() const {
  const bool answers = moved >= kHeader + bytes;
  return sends != answers ? POLLOUT : POLLIN;
}

End run(std::span<Transfer> transfers, const std::atomic<bool>& aborted, std::atomic<std::uint64_t>& moved) {
  while (true) {
    std::set<int> busy;  // with an earlier transfer of theirs
    std::vector<pollfd> waits;
    for (Transfer& transfer : transfers) {
      if (transfer.is_done || !busy.insert(transfer.socket).second) continue;
      const std::uint64_t before = transfer.moved;
      if (const End end = transfer.move(); end != End::kDone) return end;
      moved += transfer.moved - before;
      waits.push_back({.fd = transfer.socket, .events = transfer.awaited_events(), .revents = 0});
    }
    if (std::ranges::all_of(transfers, &Transfer::is_done)) return End::kDone;
    if (aborted) return End::kAborted;
    ::poll(waits.data(), waits.size(), kLook);
  }
}

}  // namespace teratron::fake_nccl

#include "comm/process/datagrams.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace teratron {

DatagramSocket::DatagramSocket(const std::string& host) : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&any), sizeof(any)) != 0) {
    throw_environment_error("cannot open a UDP socket on {}: {}", host, std::strerror(errno));
  }
  const int on = 1;  // without it the system keeps refusals to itself, and they are noticed as silence
  (void)::setsockopt(socket_, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
}

DatagramSocket::~DatagramSocket() { ::close(socket_); }

std::uint16_t DatagramSocket::port() const {
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &length);
  return ntohs(own.sin_port);
}

void DatagramSocket::send(const sockaddr_in& to, std::string_view text) const {
  // A refusal of an earlier datagram makes the next call fail instead of sending.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (::sendto(socket_, text.data(), text.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) >=
        0) {
      return;
    }
  }
}

void DatagramSocket::wait(std::chrono::milliseconds longest) const {
  pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
  ::poll(&wait, 1, static_cast<int>(longest.count()));
}

std::optional<Datagram> DatagramSocket::receive() const {
  std::array<char, kLongest> bytes{};
  Datagram datagram;
  for (int attempt = 0; attempt < 2; ++attempt) {  // the first may only tell of a refusal
    socklen_t length = sizeof(datagram.from);
    const ssize_t count = ::recvfrom(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT,
                                     reinterpret_cast<sockaddr*>(&datagram.from), &length);
    if (count < 0) continue;
    datagram.text.assign(bytes.data(), static_cast<std::size_t>(count));
    return datagram;
  }
  return std::nullopt;
}

std::optional<sockaddr_in> DatagramSocket::refused() const {
  while (true) {
    sockaddr_in to{};
    std::array<char, 512> control{};
    std::array<char, 64> start_of_text{};
    iovec text{.iov_base = start_of_text.data(), .iov_len = start_of_text.size()};
    msghdr message{.msg_name = &to,
                   .msg_namelen = sizeof(to),
                   .msg_iov = &text,
                   .msg_iovlen = 1,
                   .msg_control = control.data(),
                   .msg_controllen = control.size(),
                   .msg_flags = 0};
    if (::recvmsg(socket_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return std::nullopt;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
      if (part->cmsg_level != IPPROTO_IP || part->cmsg_type != IP_RECVERR) continue;
      int error = 0;  // sock_extended_err begins with it
      std::memcpy(&error, CMSG_DATA(part), sizeof(std::uint32_t));
      if (error == ECONNREFUSED) return to;  // others (no route) may pass
    }
  }
}

std::string own_addresses() {
  constexpr int kMost = 64;
  ifaddrs* list = nullptr;
  std::string text = "127.0.0.1";
  if (::getifaddrs(&list) != 0) return text;
  int count = 0;
  for (const ifaddrs* entry = list; entry != nullptr && count < kMost; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> name{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, name.data(), name.size()) == nullptr) continue;
    text += " " + std::string(name.data());
    ++count;
  }
  ::freeifaddrs(list);
  return text;
}

int number_from(const std::string& text) {
  return text.empty() || text.size() > 8 || text.find_first_not_of("0123456789") != text.npos ? -1 : std::stoi(text);
}

bool same_address(const sockaddr_in& a, const sockaddr_in& b) {
  return a.sin_addr.s_addr == b.sin_addr.s_addr && a.sin_port == b.sin_port;
}

}  // namespace teratron

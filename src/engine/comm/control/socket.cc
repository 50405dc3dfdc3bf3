#include "comm/control/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace teratron {
namespace {

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

void send_at_once(const Socket& socket) {
  const int on = 1;
  (void)::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// A connect() to a free port of the ephemeral range may get that port as its own end and reach itself.
bool is_with_itself(const Socket& socket) {
  sockaddr_in own{}, other{};
  socklen_t own_length = sizeof(own), other_length = sizeof(other);
  return ::getsockname(socket.get(), generic(own), &own_length) == 0 &&
         ::getpeername(socket.get(), generic(other), &other_length) == 0 &&
         own.sin_addr.s_addr == other.sin_addr.s_addr && own.sin_port == other.sin_port;
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Socket listen_at(std::uint16_t port, const std::string& address) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  const int on = 1;  // allows binding while connections of an earlier job are in TIME_WAIT
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (!address.empty() && ::inet_pton(AF_INET, address.c_str(), &any.sin_addr) != 1) {
    errno = EADDRNOTAVAIL;
    return {};
  }
  if (::bind(socket.get(), generic(any), sizeof(any)) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    const int error = errno;
    socket = Socket();
    errno = error;
    return {};
  }
  return socket;
}

std::uint16_t port_of(const Socket& listener) {
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  ::getsockname(listener.get(), generic(own), &length);
  return ntohs(own.sin_port);
}

Socket connect_to(const sockaddr_in& address, std::chrono::milliseconds longest) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return {};
  sockaddr_in to = address;
  int error = ::connect(socket.get(), generic(to), sizeof(to)) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    error = ETIMEDOUT;
    socklen_t length = sizeof(error);
    if (wait_for(socket, POLLOUT, longest)) ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error == 0 && is_with_itself(socket)) error = ECONNREFUSED;
  if (error != 0) {
    socket = Socket();
    errno = error;
    return {};
  }
  send_at_once(socket);
  return socket;
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) send_at_once(socket);
  return socket;
}

std::vector<sockaddr_in> resolve(const std::string& name, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  std::vector<sockaddr_in> addresses;
  if (::getaddrinfo(name.c_str(), nullptr, &wanted, &list) != 0) return addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(entry->ai_addr);
    address.sin_port = htons(port);
    addresses.push_back(address);
  }
  ::freeaddrinfo(list);
  return addresses;
}

std::string dotted(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

std::string to_text(const sockaddr_in& address) {
  return fmt::format("{}:{}", dotted(address), ntohs(address.sin_port));
}

std::string peer_of(const Socket& socket) {
  sockaddr_in other{};
  socklen_t length = sizeof(other);
  return ::getpeername(socket.get(), generic(other), &length) == 0 ? to_text(other) : "an unknown address";
}

bool is_dotted_address(const std::string& text) {
  in_addr address{};
  return ::inet_pton(AF_INET, text.c_str(), &address) == 1;
}

bool is_loopback(const sockaddr_in& address) { return ntohl(address.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET; }

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses = {"127.0.0.1"};
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> name{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, name.data(), name.size()) != nullptr) {
      addresses.emplace_back(name.data());
    }
  }
  ::freeifaddrs(list);
  return addresses;
}

bool wait_for(const Socket& socket, short events, std::chrono::milliseconds longest) {
  pollfd wait{.fd = socket.get(), .events = events, .revents = 0};
  return ::poll(&wait, 1, static_cast<int>(std::max<std::chrono::milliseconds::rep>(0, longest.count()))) > 0;
}

bool is_closed(const Socket& socket) {
  char byte = 0;
  const ssize_t count = ::recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace teratron

// TCP sockets over IPv4. Every call that may block has a limit.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace teratron {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

// Listens at `address`, dotted, of this host, or at all of them where it is empty; port 0 lets the system choose one.
// Empty, with errno set, on failure.
Socket listen_at(std::uint16_t port, const std::string& address = "");
std::uint16_t port_of(const Socket& listener);

// Empty, with errno set, on failure or after `longest`. The connection does not delay short writes (TCP_NODELAY).
Socket connect_to(const sockaddr_in& address, std::chrono::milliseconds longest);
// The next pending connection; empty if there is none.
Socket accept_from(const Socket& listener);

// The IPv4 addresses of a name or of dotted text; none if it cannot be resolved.
std::vector<sockaddr_in> resolve(const std::string& name, std::uint16_t port);
std::string to_text(const sockaddr_in& address);  // "127.0.0.1:29500"
std::string peer_of(const Socket& socket);        // ADDRESS:PORT of the other end of a connection
std::string dotted(const sockaddr_in& address);   // "127.0.0.1"
bool is_dotted_address(const std::string& text);  // "127.0.0.1", not a name
bool is_loopback(const sockaddr_in& address);     // reached from this host alone: 127.0.0.0/8
// Dotted addresses of this host's interfaces, the loopback address first.
std::vector<std::string> own_addresses();

// Whether one of `events` (poll(2)) occurred within `longest`.
bool wait_for(const Socket& socket, short events, std::chrono::milliseconds longest);

// Whether the peer has closed the connection and nothing is left to read.
bool is_closed(const Socket& socket);

}  // namespace teratron

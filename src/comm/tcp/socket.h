// TCP sockets over IPv4, of a class that closes them. Nothing here waits without a limit.
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

// On all addresses of this host; port 0 is one that the system picks. Empty, with errno, where that cannot be.
Socket listen_at(std::uint16_t port);
std::uint16_t port_of(const Socket& listener);

// Empty, with errno, where nobody accepts within `longest`. What is sent goes off at once, however short.
Socket connect_to(const sockaddr_in& address, std::chrono::milliseconds longest);
// A caller that is waiting; empty where there is none.
Socket accept_from(const Socket& listener);

// The IPv4 addresses of a name or of dotted text; none where it has none (now).
std::vector<sockaddr_in> resolve(const std::string& name, std::uint16_t port);
std::string to_text(const sockaddr_in& address);  // "127.0.0.1:29500"

// Whether `events` of poll(2) came within `longest`.
bool wait_for(const Socket& socket, short events, std::chrono::milliseconds longest);

// Whether the other side has closed it and left nothing to read.
bool is_closed(const Socket& socket);

}  // namespace teratron

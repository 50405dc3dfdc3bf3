// A UDP socket for short texts. Sending never waits and never fails: what does not arrive is not heard, and that is
// noticed by whoever listens. What the system tells at once is passed on: an address where nobody listens any more.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace teratron {

struct Datagram {
  std::string text;
  sockaddr_in from{};
};

class DatagramSocket {
 public:
  static constexpr std::size_t kLongest = 1400;  // bytes; what an Ethernet frame holds

  explicit DatagramSocket(const std::string& host);  // on a port the system picks; EnvironmentError
  DatagramSocket(const DatagramSocket&) = delete;
  DatagramSocket& operator=(const DatagramSocket&) = delete;
  ~DatagramSocket();

  std::uint16_t port() const;
  void send(const sockaddr_in& to, std::string_view text) const;
  void wait(std::chrono::milliseconds longest) const;  // until there is something to receive
  std::optional<Datagram> receive() const;
  // Where an earlier datagram found no socket: the process that had it is gone.
  std::optional<sockaddr_in> refused() const;

 private:
  int socket_ = -1;
};

// Of this host, as dotted text separated by spaces; the loopback address first.
std::string own_addresses();

// What another process wrote as a decimal of up to 8 digits; -1 where it is none.
int number_from(const std::string& text);

bool same_address(const sockaddr_in& a, const sockaddr_in& b);

}  // namespace teratron

#include "comm/tcp/tcp_job.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include "base/error.h"
#include "comm/process/datagrams.h"
#include "comm/tcp/tcp_transport.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// All processes are there when they connect, but may be busy with one another.
constexpr auto kLongestConnect = seconds(60);

}  // namespace

TcpJob::TcpJob(AddressLaunch launch, std::string host, milliseconds longest_start)
    : launch_(std::move(launch)), host_(std::move(host)), longest_start_(longest_start) {}

std::vector<std::string> TcpJob::meet(const std::string& contact) {
  Member own{.host = host_, .addresses = own_addresses(), .contact = contact};
  if (rank() == 0) {
    roster_ = gather_members(launch_, own, longest_start_);
  } else {
    Socket listener = listen_at(0);
    if (!listener) throw_environment_error("cannot open a TCP socket on {}: {}", host_, std::strerror(errno));
    own.port = door_.emplace(std::move(listener)).port();
    roster_ = join_members(launch_, own, longest_start_);
  }
  std::vector<std::string> contacts;
  for (const Member& member : roster_.members) contacts.push_back(member.contact);
  return contacts;
}

// Each calls those before it and lets in those after it. Who is called answers when all before it have answered it.
std::unique_ptr<Transport> TcpJob::connect(Liveness& liveness) {
  const auto own = static_cast<std::size_t>(rank());
  const auto end = Clock::now() + kLongestConnect;
  for (std::size_t other = 1; other < own; ++other) {
    while (!(roster_.sockets[other] = call(other))) {
      liveness.throw_if_lost();
      if (Clock::now() < end) continue;
      const Member& member = roster_.members[other];
      throw_environment_error(
          "rank {} on host {} cannot connect with rank {} on host {} at port {} of any of its addresses ({}); do the "
          "hosts let TCP through on all ports?",
          rank(), host_, other, member.host, member.port, member.addresses);
    }
  }
  for (std::size_t other = own + 1; own > 0 && other < roster_.sockets.size();) {
    liveness.throw_if_lost();
    if (roster_.sockets[other]) {
      ++other;
    } else if (auto guest = door_->wait_for_guest(kLook)) {
      open_to(std::move(*guest));
    } else if (Clock::now() > end) {
      throw_environment_error("rank {} on host {} did not connect with rank {} on host {} within {} seconds", other,
                              roster_.members[other].host, rank(), host_, kLongestConnect.count());
    }
  }
  door_.reset();
  return make_tcp_world(std::move(roster_.sockets), rank(), liveness);
}

Socket TcpJob::call(std::size_t other) const {
  const Member& member = roster_.members[other];
  std::istringstream addresses(member.addresses);
  for (std::string name; addresses >> name;) {
    if (name == "127.0.0.1" && member.host != host_) continue;  // it leads to this host
    for (const sockaddr_in& address : resolve(name, member.port)) {
      Socket socket = connect_to(address, kAnswer);
      const Frame hello = {"member", roster_.secret, std::to_string(rank()), std::to_string(other)};
      if (!socket || !send_frame(socket, hello, kAnswer)) continue;
      if (const auto answer = receive_frame(socket, kAnswer); answer && *answer == Frame{"welcome"}) return socket;
    }
  }
  return {};
}

void TcpJob::open_to(Door::Guest guest) {
  const Frame& frame = guest.frame;
  if (frame.size() != 4 || frame[0] != "member" || frame[1] != roster_.secret) return;  // a stranger
  const auto from = static_cast<std::size_t>(number_from(frame[2]));
  if (frame[3] != std::to_string(rank()) || from >= roster_.sockets.size()) return;  // it found another than it thought
  if (is_closed(guest.socket)) return;                                               // it tries again
  if (send_frame(guest.socket, {"welcome"}, kAnswer)) roster_.sockets[from] = std::move(guest.socket);
}

}  // namespace teratron

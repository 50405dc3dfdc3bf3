#include "comm/tcp/rendezvous.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>

#include "base/error.h"
#include "comm/lost_rank.h"
#include "comm/process/datagrams.h"

namespace teratron {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPortInUse = seconds(10);  // an earlier job may still be about to end
constexpr auto kFarewell = seconds(10);   // how long the first rank tells those who come late what is wrong
constexpr auto kEarlyEnd = seconds(30);   // how long another one looks for somebody to tell of its end
constexpr const char* kProtocol = "1";    // of hellos and of what members send each other later

// Hellos: "hello", protocol, job, world size, rank, host, port, addresses, contact, and why it failed if it did.
// Answers: "welcome"; "roster" with a secret and all members; "refused" with whose fault it is and the text to tell;
// "another job".
Frame hello_of(const AddressLaunch& launch, const Member& own, const std::string& failure) {
  return {"hello",
          kProtocol,
          launch.job,
          std::to_string(launch.world_size),
          std::to_string(launch.rank),
          own.host,
          fmt::to_string(own.port),
          own.addresses,
          own.contact,
          failure};
}

constexpr std::size_t kHelloFields = 10;

struct Hello {
  int rank, world_size;
  Member member;
  std::string protocol, failure;
};

[[noreturn]] void throw_refusal(const std::string& kind, const std::string& text) {
  if (kind == "user") throw UserError(text);
  throw EnvironmentError(text);
}

std::string lost_before_the_start(int rank, const std::string& host, const std::string& reason) {
  return LostRank(rank, host, "the start, before all ranks had met", reason).what();
}

// The first rank's side.
class Gathering {
 public:
  Gathering(const AddressLaunch& launch, const Member& own)
      : launch_(launch), members_(static_cast<std::size_t>(launch.world_size)), sockets_(members_.size()) {
    members_[0] = own;
    told_.assign(members_.size(), false);
    told_[0] = true;
  }
  Roster gather(milliseconds longest) {
    const auto end = Clock::now() + longest;
    farewell_ = std::min<milliseconds>(longest, farewell_);
    open_door(std::min<milliseconds>(longest, kPortInUse));
    while (missing_ > 0) {
      if (Clock::now() > end) end_with("environment", who_did_not_come(longest));
      if (auto guest = door_->wait_for_guest(kLook)) receive(std::move(*guest));
      look_for_leavers();
    }
    return tell_roster();
  }
  // Tells everyone who has come or comes soon, and throws it.
  [[noreturn]] void end_with(const std::string& kind, const std::string& text) {
    if (!door_) open_door(kLook);
    for (std::size_t rank = 1; rank < sockets_.size(); ++rank) tell(rank, sockets_[rank], {"refused", kind, text});
    for (const auto end = Clock::now() + farewell_; Clock::now() < end && std::ranges::count(told_, false) > 0;) {
      const auto guest = door_->wait_for_guest(kLook);
      const std::optional<Hello> hello = guest ? hello_in(guest->frame) : std::nullopt;
      if (hello) tell(static_cast<std::size_t>(std::max(0, hello->rank)), guest->socket, {"refused", kind, text});
    }
    throw_refusal(kind, text);
  }

 private:
  void open_door(milliseconds longest);
  std::optional<Hello> hello_in(const Frame& frame) const;
  void receive(Door::Guest guest);
  void look_for_leavers();
  std::string who_did_not_come(milliseconds longest) const;
  Roster tell_roster();
  void tell(std::size_t rank, const Socket& socket, const Frame& frame) {
    if (socket && send_frame(socket, frame, kAnswer) && rank < told_.size()) told_[rank] = true;
  }

  const AddressLaunch& launch_;
  std::optional<Door> door_;
  std::vector<Member> members_;
  std::vector<Socket> sockets_;
  std::vector<bool> told_;  // by rank: how it ended
  int missing_ = launch_.world_size - 1;
  milliseconds farewell_ = kFarewell;
};

void Gathering::open_door(milliseconds longest) {
  for (const auto end = Clock::now() + longest;;) {
    for (const std::uint16_t port : launch_.ports) {
      if (Socket listener = listen_at(port)) {
        door_.emplace(std::move(listener));
        return;
      }
    }
    const int error = errno;
    if (Clock::now() > end) {
      throw_environment_error(
          "rank 0 cannot listen at port {} on {}: {}; look for another job there or for a second process with RANK=0, "
          "or choose another MASTER_PORT",
          fmt::join(launch_.ports, ", "), members_[0].host, std::strerror(error));
    }
    std::this_thread::sleep_for(kLook);
  }
}

std::optional<Hello> Gathering::hello_in(const Frame& frame) const {
  if (frame.size() < 5 || frame[0] != "hello" || frame[2] != launch_.job) return std::nullopt;
  Hello hello{.rank = number_from(frame[4]), .world_size = number_from(frame[3]), .protocol = frame[1]};
  if (hello.protocol != kProtocol || frame.size() != kHelloFields) return hello;
  hello.member = {frame[5], static_cast<std::uint16_t>(number_from(frame[6])), frame[7], frame[8]};
  hello.failure = frame[9];
  return hello;
}

void Gathering::receive(Door::Guest guest) {
  const std::optional<Hello> hello = hello_in(guest.frame);
  if (!hello) {  // of another job whose port is near, or of something else
    send_frame(guest.socket, {"another job"}, kLook);
    return;
  }
  const auto refuse = [&](const std::string& kind, const std::string& text) {
    tell(static_cast<std::size_t>(std::max(0, hello->rank)), guest.socket, {"refused", kind, text});
    end_with(kind, text);
  };
  const std::string& host = hello->member.host;
  if (hello->protocol != kProtocol || host.empty()) {
    return refuse("user",
                  fmt::format("rank {} runs another version of teratron (it meets others by protocol {}, rank 0 "
                              "by {}); start the same program everywhere",
                              hello->rank, hello->protocol, kProtocol));
  }
  if (hello->world_size != launch_.world_size) {
    return refuse("user", fmt::format("rank {} on host {} was started with WORLD_SIZE={}, and rank 0 on host {} with "
                                      "WORLD_SIZE={}; start all processes with the same number",
                                      hello->rank, host, hello->world_size, members_[0].host, launch_.world_size));
  }
  if (!hello->failure.empty()) {
    return refuse("environment", lost_before_the_start(hello->rank, host, hello->failure));
  }
  const auto rank = static_cast<std::size_t>(hello->rank);
  if (hello->rank < 0 || rank >= members_.size() || rank == 0 || sockets_[rank]) {
    const std::string& other = rank < members_.size() ? members_[rank].host : host;
    return refuse("user",
                  fmt::format("two processes were started with RANK={}, on host {} and on host {}; give each its "
                              "own, from 0 to {}",
                              hello->rank, other, host, launch_.world_size - 1));
  }
  if (is_closed(guest.socket) || !send_frame(guest.socket, {"welcome"}, kAnswer)) return;  // it tries again
  members_[rank] = hello->member;
  sockets_[rank] = std::move(guest.socket);
  --missing_;
}

void Gathering::look_for_leavers() {
  for (std::size_t rank = 1; rank < sockets_.size(); ++rank) {
    if (!sockets_[rank] || !is_closed(sockets_[rank])) continue;
    told_[rank] = true;
    sockets_[rank] = Socket();
    end_with("environment", lost_before_the_start(static_cast<int>(rank), members_[rank].host, "its process ended"));
  }
}

std::string Gathering::who_did_not_come(milliseconds longest) const {
  std::vector<std::size_t> missing;
  for (std::size_t rank = 1; rank < sockets_.size(); ++rank) {
    if (!sockets_[rank]) missing.push_back(rank);
  }
  const std::size_t shown = std::min<std::size_t>(missing.size(), 16);
  return fmt::format(
      "not all of the {} processes came to {}:{} within {:g} seconds: rank {}{} is missing; look for processes that "
      "were not started or cannot reach that address",
      launch_.world_size, launch_.address, door_->port(), std::chrono::duration<double>(longest).count(),
      fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
      shown < missing.size() ? ", .." : "");
}

Roster Gathering::tell_roster() {
  std::random_device random;
  const std::string secret = fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
  Frame frame = {"roster", secret};
  for (const Member& member : members_) {
    frame.insert(frame.end(), {member.host, fmt::to_string(member.port), member.addresses, member.contact});
  }
  for (std::size_t rank = 1; rank < sockets_.size(); ++rank) {
    if (send_frame(sockets_[rank], frame, kAnswer)) continue;
    end_with("environment", lost_before_the_start(static_cast<int>(rank), members_[rank].host, "its process ended"));
  }
  return {secret, std::move(members_), std::move(sockets_)};
}

Roster roster_in(const Frame& frame, const AddressLaunch& launch, Socket socket) {
  constexpr std::size_t kFields = 4;
  const auto size = static_cast<std::size_t>(launch.world_size);
  check_equal(frame.size(), 2 + kFields * size, "texts of a roster");
  Roster roster{.secret = frame[1]};
  for (std::size_t at = 2; at < frame.size(); at += kFields) {
    const auto port = static_cast<std::uint16_t>(number_from(frame[at + 1]));
    roster.members.push_back({frame[at], port, frame[at + 2], frame[at + 3]});
  }
  roster.sockets.resize(size);
  roster.sockets[0] = std::move(socket);
  return roster;
}

// A connection with the first rank that has said welcome, or none now. `note`: what was seen, for people.
Socket find_first_rank(const AddressLaunch& launch, const Frame& hello, std::string& note) {
  note = "that name has no IPv4 address";
  for (const std::uint16_t port : launch.ports) {
    for (const sockaddr_in& address : resolve(launch.address, port)) {
      Socket socket = connect_to(address, kAnswer);
      if (!socket) {
        note = fmt::format("{}: {}", to_text(address), std::strerror(errno));
        continue;
      }
      const auto answer = send_frame(socket, hello, kAnswer) ? receive_frame(socket, kAnswer) : std::nullopt;
      if (answer && answer->size() == 1 && answer->front() == "welcome") return socket;
      if (answer && answer->size() == 3 && answer->front() == "refused") throw_refusal((*answer)[1], (*answer)[2]);
      note = fmt::format("{}: something else than rank 0 of this job answers there", to_text(address));
    }
  }
  return {};
}

Roster join(const AddressLaunch& launch, const Frame& hello, milliseconds longest) {
  const auto end = Clock::now() + longest;
  std::string note;
  Socket socket;
  while (!(socket = find_first_rank(launch, hello, note))) {
    if (Clock::now() > end) {
      throw_environment_error(
          "rank {} did not find rank 0 at {}:{} (MASTER_ADDR and MASTER_PORT) within {:g} seconds; see that it was "
          "started there and that this host reaches it (the last try: {})",
          launch.rank, launch.address, launch.port, std::chrono::duration<double>(longest).count(), note);
    }
    std::this_thread::sleep_for(kLook);
  }
  // The first rank knows how long to wait for the others.
  const auto answer = receive_frame(socket, longest + 2 * kFarewell);
  if (answer && answer->size() == 3 && answer->front() == "refused") throw_refusal((*answer)[1], (*answer)[2]);
  if (!answer || answer->front() != "roster") {
    throw EnvironmentError(lost_before_the_start(0, launch.address, "its process ended"));
  }
  return roster_in(*answer, launch, std::move(socket));
}

}  // namespace

Roster gather_members(const AddressLaunch& launch, const Member& own, milliseconds longest) {
  return Gathering(launch, own).gather(longest);
}

Roster join_members(const AddressLaunch& launch, const Member& own, milliseconds longest) {
  return join(launch, hello_of(launch, own, ""), longest);
}

void report_early_end(const AddressLaunch& launch, const std::string& host, int exit_code) {
  const Member own{.host = host};
  const std::string reason = fmt::format("it ended with exit code {}, and its own output says why", exit_code);
  try {
    if (launch.rank == 0) Gathering(launch, own).end_with("environment", lost_before_the_start(0, host, reason));
    (void)join(launch, hello_of(launch, own, reason), kEarlyEnd);
  } catch (const std::exception&) {
    // Nobody is there to be told, or everyone has been.
  }
}

}  // namespace teratron

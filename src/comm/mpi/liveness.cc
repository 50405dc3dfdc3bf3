#include "comm/mpi/liveness.h"

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
#include "comm/lost_rank.h"

namespace teratron {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kBeat = seconds(1);
// With the beat and the news of it, well within ten seconds; process 0 is given longer, since it knows better.
constexpr auto kSilence = seconds(5), kSilenceOfFirst = seconds(7);
constexpr auto kWakeUp = milliseconds(100);
// Whoever has not run for this long was stopped itself and cannot judge who was silent.
constexpr auto kOwnPause = seconds(3);
constexpr std::size_t kLongestDatagram = 1400, kLongestText = 300;

std::vector<std::string> fields_of(std::string_view text, char separator) {
  std::vector<std::string> fields;
  while (true) {
    const std::size_t end = text.find(separator);
    fields.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

// One field of a datagram: no separators, not too long.
std::string field(std::string_view text) {
  std::string result(text.substr(0, kLongestText));
  for (char& letter : result) {
    if (letter == '\n') letter = ' ';
  }
  return result;
}

int number(const std::string& text) {
  return text.empty() || text.size() > 8 || text.find_first_not_of("0123456789") != text.npos ? -1 : std::stoi(text);
}

std::string own_addresses() {
  ifaddrs* list = nullptr;
  std::string text = "127.0.0.1";
  if (::getifaddrs(&list) != 0) return text;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) != 0 || (entry->ifa_flags & IFF_UP) == 0) continue;
    std::array<char, INET_ADDRSTRLEN> name{};
    const auto* const address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    if (::inet_ntop(AF_INET, &address->sin_addr, name.data(), name.size()) != nullptr)
      text += " " + std::string(name.data());
  }
  ::freeifaddrs(list);
  return text;
}

}  // namespace

Liveness::Liveness(int rank, int size, std::string host)
    : rank_(rank), size_(size), host_(std::move(host)), socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&any), sizeof(any)) != 0) {
    throw_environment_error("cannot open a UDP socket on {}: {}", host_, std::strerror(errno));
  }
}

Liveness::~Liveness() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  ::close(socket_);
}

std::string Liveness::contact() const {
  sockaddr_in own{};
  socklen_t length = sizeof(own);
  ::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &length);
  return fmt::format("{}\n{}\n{}", field(host_), ntohs(own.sin_port), own_addresses());
}

void Liveness::start(const std::vector<std::string>& contacts, const std::string& job) {
  job_ = job;
  for (const std::string& contact : contacts) {
    const std::vector<std::string> fields = fields_of(contact, '\n');
    check_equal(fields.size(), std::size_t{3}, "fields of a contact");
    Peer peer{.host = fields[0], .last_heard = Clock::now()};
    for (const std::string& name : fields_of(fields[2], ' ')) {
      // The loopback address leads to a process of this host only.
      if (name == "127.0.0.1" && peer.host != field(host_)) continue;
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(number(fields[1])));
      if (::inet_pton(AF_INET, name.c_str(), &address.sin_addr) == 1) peer.addresses.push_back(address);
    }
    peers_.push_back(std::move(peer));
  }
  thread_ = std::thread([this] { run(); });
}

void Liveness::set_activity(std::string_view activity) {
  const std::lock_guard lock(mutex_);
  activity_ = field(activity);
}

void Liveness::throw_lost() const {
  const std::lock_guard lock(mutex_);
  throw LostRank(lost_->rank, lost_->host, lost_->activity, lost_->reason);
}

void Liveness::report_failure(const std::string& reason) {
  for (int attempt = 0; attempt < 5; ++attempt) {  // datagrams may get lost
    {
      const std::lock_guard lock(mutex_);
      if (rank_ == 0) {
        declare_lost(0, reason);
        tell_of_lost();
      } else if (!lost_) {
        send(peers_[0], {"failed", std::to_string(rank_), activity_, field(reason)});
      }
    }
    std::this_thread::sleep_for(kWakeUp);
  }
}

void Liveness::run() {
  Clock::time_point next_beat = Clock::now(), last_run = next_beat;
  while (!stopping_) {
    pollfd wait{.fd = socket_, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, static_cast<int>(kWakeUp.count()));
    const std::lock_guard lock(mutex_);
    receive_all();
    const Clock::time_point now = Clock::now();
    if (now - last_run > kOwnPause) {
      for (Peer& peer : peers_) peer.last_heard = now;
    }
    last_run = now;
    if (now < next_beat) continue;
    next_beat = now + kBeat;
    beat();
    look_for_silence();
    if (rank_ == 0 && lost_) tell_of_lost();
  }
}

void Liveness::receive_all() {
  std::array<char, kLongestDatagram> datagram{};
  while (true) {
    sockaddr_in from{};
    socklen_t length = sizeof(from);
    const ssize_t bytes = ::recvfrom(socket_, datagram.data(), datagram.size(), MSG_DONTWAIT,
                                     reinterpret_cast<sockaddr*>(&from), &length);
    if (bytes < 0) return;
    take(fields_of({datagram.data(), static_cast<std::size_t>(bytes)}, '\n'), from);
  }
}

// job, kind, rank of the sender (or of the one that is lost), and what the kind adds.
void Liveness::take(const std::vector<std::string>& fields, const sockaddr_in& from) {
  if (fields.size() < 4 || fields[0] != job_) return;
  const int rank = number(fields[2]);
  if (rank < 0 || rank >= size_) return;
  if (fields[1] == "lost" && fields.size() == 6) {
    if (!lost_) lost_ = {rank, fields[3], fields[4], fields[5]};
    is_lost_ = true;
    return;
  }
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.activity = fields[3];
  peer.addresses = {from};
  peer.heard = true;
  peer.last_heard = Clock::now();
  if (fields[1] == "failed" && fields.size() == 5 && rank_ == 0) {
    declare_lost(rank, fields[4]);
    tell_of_lost();
  }
}

void Liveness::beat() {
  const std::vector<std::string> fields = {"beat", std::to_string(rank_), activity_};
  if (rank_ != 0) return send(peers_[0], fields);
  for (std::size_t peer = 1; peer < peers_.size(); ++peer) send(peers_[peer], fields);
}

void Liveness::look_for_silence() {
  const auto now = Clock::now();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || (rank_ != 0 && rank != 0)) continue;
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (now - peer.last_heard < (rank == 0 ? kSilenceOfFirst : kSilence)) continue;
    if (peer.heard) {
      declare_lost(rank, fmt::format("nothing was heard of it for {} seconds (it died, was stopped, or its host cannot "
                                     "be reached)",
                                     std::chrono::duration_cast<seconds>(now - peer.last_heard).count()));
    } else {
      declare_lost(rank, fmt::format("no UDP datagram of it ever came to {} (do the hosts let UDP through?)", host_));
    }
  }
}

void Liveness::declare_lost(int rank, const std::string& reason) {
  if (!lost_) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    lost_ = {rank, peer.host, rank == rank_ ? activity_ : peer.activity, field(reason)};
  }
  is_lost_ = true;
}

void Liveness::tell_of_lost() {
  for (std::size_t peer = 1; peer < peers_.size(); ++peer) {
    send(peers_[peer], {"lost", std::to_string(lost_->rank), lost_->host, lost_->activity, lost_->reason});
  }
}

void Liveness::send(const Peer& peer, const std::vector<std::string>& fields) const {
  std::string text = job_;
  for (const std::string& part : fields) text += "\n" + part;
  for (const sockaddr_in& address : peer.addresses) {
    // What cannot be sent is not heard, and that is noticed where it matters.
    (void)::sendto(socket_, text.data(), text.size(), MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address),
                   sizeof(address));
  }
}

}  // namespace teratron

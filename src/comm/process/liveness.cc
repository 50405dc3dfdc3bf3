#include "comm/process/liveness.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "comm/lost_rank.h"

namespace teratron {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kBeat = seconds(1);
// With the news of it and the patience below, within ten seconds. Process 0 is given longer, since it knows better.
constexpr auto kSilence = milliseconds(5000), kSilenceOfFirst = milliseconds(6500);
constexpr auto kWakeUp = milliseconds(100);
// How long a rank may go on without asking who is lost; less where mpirun is about to kill it.
constexpr auto kPatience = milliseconds(1500), kPatienceTerminated = milliseconds(200);
// How long a rank that was told may take to leave what it did.
constexpr auto kLeaving = milliseconds(3000);
// How long the news of who died may take where mpirun ends the job.
constexpr auto kObituary = milliseconds(400);
// Whoever has not run for this long was stopped itself and cannot judge who was silent.
constexpr auto kOwnPause = seconds(3);
constexpr std::size_t kLongestText = 300;

std::vector<std::string> split_fields(std::string_view text, char separator) {
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

}  // namespace

Liveness::Liveness(int rank, int size, std::string host, EndProcess end_process)
    : rank_(rank), size_(size), host_(std::move(host)), end_process_(std::move(end_process)), socket_(host_) {}

Liveness::~Liveness() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  if (termination_ && (lost_ || told_)) termination_->ignore_from_now_on();
  if (rank_ != 0 || !lost_) return;
  for (int repeat = 0; repeat < 3; ++repeat) {  // nobody else will tell, and datagrams may get lost
    tell_of_lost();
    std::this_thread::sleep_for(milliseconds(20));
  }
}

std::string Liveness::contact() const {
  return fmt::format("{}\n{}\n{}", field(host_), socket_.port(), own_addresses());
}

void Liveness::start(const std::vector<std::string>& contacts, const std::string& job) {
  job_ = job;
  for (const std::string& contact : contacts) {
    const std::vector<std::string> fields = split_fields(contact, '\n');
    check_equal(fields.size(), std::size_t{3}, "fields of a contact");
    Peer peer{.host = fields[0], .last_heard = Clock::now()};
    for (const std::string& name : split_fields(fields[2], ' ')) {
      // The loopback address leads to a process of this host only.
      if (name == "127.0.0.1" && peer.host != field(host_)) continue;
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(number_from(fields[1])));
      if (::inet_pton(AF_INET, name.c_str(), &address.sin_addr) == 1) peer.addresses.push_back(address);
    }
    peers_.push_back(std::move(peer));
  }
  crowded_ = std::ranges::count(peers_, field(host_), &Peer::host) > ::sysconf(_SC_NPROCESSORS_ONLN);
  termination_.emplace();
  thread_ = std::thread([this] { run(); });
}

void Liveness::set_activity(std::string_view activity) {
  const std::lock_guard lock(mutex_);
  activity_ = field(activity);
}

void Liveness::throw_lost() const {
  const std::lock_guard lock(mutex_);
  told_ = true;
  told_since_ = Clock::now();
  throw LostRank(lost_->rank, lost_->host, lost_->activity, lost_->reason);
}

void Liveness::await_verdict(milliseconds longest) const {
  for (const auto end = Clock::now() + longest; Clock::now() < end;) {
    throw_if_lost();
    std::this_thread::sleep_for(milliseconds(10));
  }
}

void Liveness::throw_unreachable(int rank, const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    declare_lost(rank, reason);
    for (int repeat = 0; rank_ != 0 && repeat < 3; ++repeat) tell_of_lost_to(peers_[0]);  // datagrams may get lost
  }
  throw_lost();
}

void Liveness::report_failure(const std::string& reason) {
  told_ = true;
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

void Liveness::expect_farewells() {
  const std::lock_guard lock(mutex_);
  expects_farewells_ = true;
}

void Liveness::run() {
  Clock::time_point next_beat = Clock::now(), last_run = next_beat;
  while (!stopping_) {
    socket_.wait(kWakeUp);
    const Clock::time_point now = Clock::now();
    const std::lock_guard lock(mutex_);
    receive_all(now);
    if (now - last_run > kOwnPause) {
      for (Peer& peer : peers_) peer.last_heard = now;
    }
    last_run = now;
    if (now >= next_beat && !terminated_since_) {
      next_beat = now + kBeat;
      beat();
      if (rank_ == 0 && lost_) tell_of_lost();
    }
    look_for_silence(now);
    act_on_termination(now);
    end_where_nobody_asks(now);
  }
}

void Liveness::receive_all(Clock::time_point now) {
  while (const std::optional<Datagram> datagram = socket_.receive()) take(*datagram, now);
  while (const std::optional<sockaddr_in> address = socket_.refused()) take_refusal(*address);
}

// job, kind, rank of the sender (or of the one that is lost), and what the kind adds.
void Liveness::take(const Datagram& datagram, Clock::time_point now) {
  const std::vector<std::string> fields = split_fields(datagram.text, '\n');
  if (fields.size() < 4 || fields[0] != job_) return;
  const int rank = number_from(fields[2]);
  if (rank < 0 || rank >= size_) return;
  if (fields[1] == "lost" && fields.size() == 6) {
    if (!lost_) lost_ = {rank, fields[3], fields[4], fields[5], now};
    is_lost_ = true;
    return;
  }
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  peer.activity = fields[3];
  peer.addresses = {datagram.from};
  peer.heard = true;
  peer.last_heard = now;
  if (fields[1] == "failed" && fields.size() == 5 && rank_ == 0) declare_lost(rank, fields[4]);
}

void Liveness::take_refusal(const sockaddr_in& from) {
  if (expects_farewells_) return;
  for (int rank = 0; rank < size_; ++rank) {
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    // Before a peer is heard, an address may have been a wrong guess.
    if (rank == rank_ || !peer.heard || !same_address(peer.addresses.front(), from)) continue;
    declare_lost(rank, "its process is gone (it was killed, or crashed)");
  }
}

void Liveness::beat() const {
  const std::vector<std::string> fields = {"beat", std::to_string(rank_), activity_};
  if (rank_ != 0) return send(peers_[0], fields);
  for (std::size_t peer = 1; peer < peers_.size(); ++peer) send(peers_[peer], fields);
}

void Liveness::look_for_silence(Clock::time_point now) {
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

// Whoever died has closed its socket: one more beat finds out who it was. Where nobody did, it was the user who wanted
// the job to end.
void Liveness::act_on_termination(Clock::time_point now) {
  if (!termination_->came()) return;
  if (!terminated_since_) {
    terminated_since_ = now;
    beat();
  } else if (!lost_ && now - *terminated_since_ > kObituary) {
    termination_->obey();
  }
}

void Liveness::end_where_nobody_asks(Clock::time_point now) const {
  if (!lost_ || (told_ && !told_since_)) return;
  const bool has_time = told_ ? now - *told_since_ < kLeaving
                              : now - lost_->known_since < (terminated_since_ ? kPatienceTerminated : kPatience);
  if (has_time) return;
  end_process_(LostRank(lost_->rank, lost_->host, lost_->activity, lost_->reason).what());
}

void Liveness::declare_lost(int rank, const std::string& reason) {
  if (lost_) return;  // the first one ends the job; what follows may be its consequences
  const Peer& peer = peers_[static_cast<std::size_t>(rank)];
  lost_ = {rank, peer.host, rank == rank_ ? activity_ : peer.activity, field(reason), Clock::now()};
  is_lost_ = true;
  if (rank_ == 0) tell_of_lost();
}

void Liveness::tell_of_lost() const {
  for (std::size_t peer = 1; peer < peers_.size(); ++peer) tell_of_lost_to(peers_[peer]);
}

void Liveness::tell_of_lost_to(const Peer& peer) const {
  send(peer, {"lost", std::to_string(lost_->rank), lost_->host, lost_->activity, lost_->reason});
}

void Liveness::send(const Peer& peer, const std::vector<std::string>& fields) const {
  std::string text = job_;
  for (const std::string& part : fields) text += "\n" + part;
  for (const sockaddr_in& address : peer.addresses) socket_.send(address, text);
}

}  // namespace teratron

#include "comm/control/control_plane.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/host/resources.h"
#include "comm/lost_rank.h"

namespace teratron {
namespace {

constexpr auto kEarlyEnd = std::chrono::seconds(30);  // how long a process looks for the first rank to report its end

}  // namespace

ControlPlane::ControlPlane(Membership own, ControlSettings settings, Socket listener)
    : own_(std::move(own)),
      settings_(std::move(settings)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      peers_(static_cast<std::size_t>(own_.size)),
      watch_(settings_.watch, own_.size) {
  peer(own_.rank).host = own_.host;
  if (listener) listener_.emplace(std::move(listener), settings_.longest_hello);
  thread_ = std::thread([this] { run(); });
}

ControlPlane::~ControlPlane() {
  stopping_ = true;
  wake();
  thread_.join();
  if (termination_ && has_failed_) termination_->ignore_from_now_on();
  ::close(wake_);
}

void ControlPlane::wake() const { (void)::eventfd_write(wake_, 1); }

template <class Ready>
void ControlPlane::wait_until(std::unique_lock<std::mutex>& lock, const Ready& ready) {
  changed_.wait(lock, [&] { return ready() || failure_.has_value(); });
  if (ready()) return;
  lock.unlock();
  throw_failure();
}

void ControlPlane::meet() {
  std::unique_lock lock(mutex_);
  asks_ = true;
  wait_until(lock, [&] { return has_met_.load(); });
}

std::string ControlPlane::activity() const {
  return has_met_ ? place_.look().text() : "the start, before all ranks had met";
}

void ControlPlane::throw_failure() const {
  std::unique_lock lock(mutex_);
  notified_ = true;
  notified_since_ = Clock::now();
  const FailureNotice failure = *failure_;
  lock.unlock();
  abort_channels();
  failure.raise();
}

void ControlPlane::await_verdict() const {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, kVerdict, [&] { return failure_.has_value(); })) return;
  lock.unlock();
  throw_failure();
}

void ControlPlane::report_failure(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (notified_.exchange(true)) return;
  notified_since_ = Clock::now();
  is_own_failure_ = true;
  if (is_first()) return declare_lost(0, reason);
  if (!failure_) peer(0).connection.send({"failed", activity(), reason});
  wake();
}

void ControlPlane::give_up() noexcept {
  try {
    throw;
  } catch (const LostRank&) {  // the failure of another rank
  } catch (const std::exception& error) {
    report_failure(error.what());
  } catch (...) {
    report_failure("an exception without a message");
  }
  abort_channels();
}

void ControlPlane::watch_channels(const std::shared_ptr<OpenChannels>& channels) {
  const std::lock_guard lock(mutex_);
  const bool is_known = std::ranges::any_of(
      channels_, [&](const std::weak_ptr<OpenChannels>& known) { return known.lock() == channels; });
  if (!is_known) channels_.push_back(channels);
}

void ControlPlane::abort_channels() const {
  std::unique_lock lock(mutex_);
  const std::vector<std::weak_ptr<OpenChannels>> all = channels_;
  lock.unlock();
  for (const std::weak_ptr<OpenChannels>& weak : all) {
    if (const auto channels = weak.lock()) channels->abort();
  }
}

void ControlPlane::report_early_end(int exit_code) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kEarlyEnd, [&] { return is_first() || !peer(0).host.empty() || failure_.has_value(); });
  }
  report_failure(fmt::format("it ended with exit code {}, and its own output says why", exit_code));
}

void ControlPlane::finish() {
  const Place::Waits waits({.name = "the end of all ranks"}, &place_);
  std::unique_lock lock(mutex_);
  if (is_first()) {
    mark_done(0);
  } else {
    peer(0).connection.send({"done"});
  }
  wait_until(lock, [&] { return is_over_; });
}

std::vector<std::string> ControlPlane::all_gather(const std::string& key, int group_rank, int size,
                                                  const std::string& text) {
  std::unique_lock lock(mutex_);
  if (is_first()) {
    contribute(0, key, group_rank, size, text);
  } else {
    FrameConnection& connection = peer(0).connection;
    connection.send({"gather", key, std::to_string(group_rank), std::to_string(size), text});
    if (connection.has_to_write()) wake();
  }
  wait_until(lock, [&] { return gathered_.contains(key); });
  return std::move(gathered_.extract(key).mapped());
}

// The first rank's: keeps the text, and sends all of them to everyone when the last one has come.
void ControlPlane::contribute(int from, const std::string& key, int group_rank, int size, const std::string& text) {
  if (group_rank < 0 || group_rank >= size || size > own_.size) return;
  auto [entry, is_new] = exchanges_.try_emplace(key);
  Exchange& exchange = entry->second;
  if (is_new) exchange.next_notice = Clock::now() + settings_.notice_interval;
  exchange.texts.resize(static_cast<std::size_t>(size));
  exchange.texts[static_cast<std::size_t>(group_rank)] = text;
  exchange.came.push_back(from);
  if (static_cast<int>(exchange.came.size()) < size) return;
  std::vector<std::string> texts;
  for (std::optional<std::string>& theirs : exchange.texts) texts.push_back(std::move(theirs).value_or(""));
  Frame frame = {"gathered", key};
  frame.insert(frame.end(), texts.begin(), texts.end());
  for (const int rank : exchange.came) {
    if (rank != 0) peer(rank).connection.send(frame);
  }
  if (std::ranges::count(exchange.came, 0) > 0) {
    gathered_[key] = std::move(texts);
    changed_.notify_all();
  }
  exchanges_.erase(entry);
  wake();
}

std::vector<int> ControlPlane::neighbours() const {
  if (!is_first()) return {0};
  std::vector<int> ranks;
  for (int rank = 1; rank < own_.size; ++rank) ranks.push_back(rank);
  return ranks;
}

std::vector<std::string> ControlPlane::hosts() const {
  std::vector<std::string> hosts;
  for (const Peer& peer : peers_) hosts.push_back(peer.host);
  return hosts;
}

std::vector<int> ControlPlane::missing() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < own_.size; ++rank) {
    if (peers_[static_cast<std::size_t>(rank)].host.empty()) ranks.push_back(rank);
  }
  return ranks;
}

void ControlPlane::send_all(const Frame& frame) {
  for (const int rank : neighbours()) peer(rank).connection.send(frame);
}

void ControlPlane::beat(Clock::time_point now) {
  const std::vector<int> absent = is_first() ? missing() : std::vector<int>();
  const Place::Look look = place_.look();
  const auto memory = static_cast<std::int64_t>(resident_memory_bytes());
  send_all({"beat", activity(), absent.empty() ? "" : text_of_ranks(absent), look.waits ? "waits" : "",
            std::to_string(look.progress), std::to_string(memory)});
  if (!is_first()) return;
  watch_.see(0, {.place = look.text(), .waits = look.waits, .progress = look.progress, .memory = memory}, now);
}

void ControlPlane::end_meeting() {
  listener_.reset();
  crowded_ = std::ranges::count(peers_, own_.host, &Peer::host) > ::sysconf(_SC_NPROCESSORS_ONLN);
  if (is_first()) {
    Frame frame = {"met"};
    for (Peer& peer : peers_) {
      frame.push_back(peer.host);
      peer.activity.clear();
    }
    send_all(frame);
  }
  for (int rank = 0; rank < own_.size; ++rank) watch_.set_host(rank, peer(rank).host);
  watch_.begin(Clock::now());
  has_met_ = true;
  changed_.notify_all();
}

void ControlPlane::mark_done(int rank) {
  peer(rank).is_done = true;
  watch_.see_end(rank, Clock::now());
  if (!std::ranges::all_of(peers_, &Peer::is_done)) return;
  is_over_ = true;
  send_all({"end"});
  changed_.notify_all();
}

void ControlPlane::declare_lost(int rank, const std::string& reason) {
  fail({.kind = FailureNotice::Kind::kLostRank,
        .reason = reason,
        .rank = rank,
        .host = peer(rank).host,
        .activity = rank == own_.rank ? activity() : peer(rank).activity});
}

void ControlPlane::fail(FailureNotice notice) {
  if (failure_) return;  // the first one ends the job; what follows may be its consequences
  failure_ = std::move(notice);
  failed_since_ = Clock::now();
  has_failed_ = true;
  if (is_first()) send_all(failure_->frame());
  for (const int rank : neighbours()) peer(rank).was_notified = peer(rank).connection.is_open();
  changed_.notify_all();
  wake();
}

}  // namespace teratron

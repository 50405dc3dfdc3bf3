#include "comm/thread/rendezvous.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace teratron {

std::string CollectiveCall::to_string() const {
  if (elements == 0) return "a host exchange";
  std::string text = fmt::format("{} of {} {}", name_of(collective), elements, name_of(dtype));
  if (collective == Collective::kBroadcast) text += fmt::format(" from {}", root);
  if (op == ReduceOp::kMax) text += " (maximum)";
  return text;
}

Rendezvous::Rendezvous(ThreadWorld& world, EventCount& event, const std::vector<int>& ranks, const CollectiveCall& call)
    : world_(world), event_(event), ranks_(ranks), call_(call), members_(ranks.size()) {}

bool Rendezvous::join(int rank, const CollectiveCall& call, const Contribution& contribution) {
  const std::lock_guard lock(mutex_);
  if (joined_ == 0) first_ = rank;
  if (!(call == call_)) {
    throw InternalError(fmt::format("ranks of one group call different collectives: rank {} {}, rank {} {}",
                                    world_rank(first_), call_.to_string(), world_rank(rank), call.to_string()));
  }
  member(rank).contribution = contribution;
  return ++joined_ == size();
}

void Rendezvous::take_part_early(int rank, const Part& part) {
  const std::lock_guard lock(mutex_);
  if (joined_ == size() && !withdrawn_) member(rank).done = part();
}

std::vector<CommunicationStream::EventPtr> Rendezvous::withdraw() {
  const std::lock_guard lock(mutex_);
  withdrawn_ = true;
  std::vector<CommunicationStream::EventPtr> begun;
  for (const Member& member : members_) begun.push_back(member.done);
  return begun;
}

// A member that has ended. While some have not entered it is one of those, since members that entered stay until all
// have finished.
std::optional<int> Rendezvous::ended_rank() const {
  const auto ended = std::ranges::find_if(ranks_, [&](int rank) { return world_.has_ended(rank); });
  return ended == ranks_.end() ? std::nullopt : std::optional(*ended);
}

void Rendezvous::enter(int rank) {
  int arrived = arrived_.load();
  while (arrived != kGivenUp && !arrived_.compare_exchange_weak(arrived, arrived + 1)) {
  }
  if (arrived + 1 == size()) return event_.notify_all();
  const auto is_lost = [&] { return world_.failed() || ended_rank(); };
  event_.wait_until([&] {
    arrived = arrived_.load();
    return arrived >= size() || arrived == kGivenUp || is_lost();
  });
  while (arrived < size() && arrived != kGivenUp && !arrived_.compare_exchange_weak(arrived, kGivenUp)) {
  }
  if (arrived >= size()) return;
  event_.wait_until(is_lost);  // another member may have given up, and is about to report why
  if (const auto ended = ended_rank()) {
    world_.fail(*ended, fmt::format("it ended while rank {} waits for it in {}", world_rank(rank), call_.to_string()));
  }
  world_.throw_lost_rank();
}

void Rendezvous::finish(int rank, CommunicationStream::EventPtr done) {
  member(rank).done = std::move(done);
  leave();
  if (std::ranges::none_of(members_, &Member::gave_up)) return;
  event_.wait_until([&] { return world_.failed(); });
  world_.throw_lost_rank();
}

void Rendezvous::give_up_part(int rank) {
  member(rank).gave_up = true;
  leave();
}

void Rendezvous::leave() {
  if (arrived_.fetch_add(1) + 1 == 2 * size()) return event_.notify_all();
  event_.wait_until([&] { return arrived_.load() == 2 * size(); });
}

void Message::bring(bool sends, const TensorRef& view, CommunicationStream::EventPtr ready) {
  const int side = sends ? 0 : 1;
  const TensorRef& other = views_[1 - side];
  views_[side] = view;
  ready_[side] = std::move(ready);
  if (!other) return;
  if (other.dtype != view.dtype || other.elements() != view.elements()) {
    throw InternalError(fmt::format("rank {} sends {} {} where rank {} receives {} {}", ends_[0], views_[0].elements(),
                                    name_of(views_[0].dtype), ends_[1], views_[1].elements(),
                                    name_of(views_[1].dtype)));
  }
  int half = kHalf;
  if (state_.compare_exchange_strong(half, kReady)) event_.notify_all();
}

void Message::copy(CommunicationStream& stream) {
  try {
    for (const CommunicationStream::EventPtr& ready : ready_) stream.wait_for(ready);
    stream.copy(static_cast<std::byte*>(views_[1].data), static_cast<const std::byte*>(views_[0].data),
                views_[0].bytes());
    done_ = stream.record();
  } catch (...) {
    state_.store(kGivenUp);  // the peer waits for this rank to be lost
    event_.notify_all();
    throw;
  }
  state_.store(kDone);
  event_.notify_all();
}

void Message::wait(bool sends, CommunicationStream& stream) {
  const int peer = ends_[sends ? 1 : 0];
  const auto peer_is_lost = [&] { return world_.failed() || world_.has_ended(peer); };
  event_.wait_until([&] { return state_.load() != kHalf || peer_is_lost(); });
  int state = kHalf;
  state_.compare_exchange_strong(state, kGivenUp);  // fails if the peer came
  if (state == kReady && state_.compare_exchange_strong(state, kCopying)) copy(stream);
  event_.wait_until([&] { return state_.load() != kCopying; });
  if (state_.load() == kDone) return stream.compute_waits_for(done_);
  event_.wait_until(peer_is_lost);  // a peer that withdrew is about to report why
  world_.fail(peer,
              fmt::format("it ended while rank {} waits for its {}", ends_[sends ? 0 : 1], sends ? "receive" : "send"));
  world_.throw_lost_rank();
}

void Message::withdraw(CommunicationStream& stream) {
  for (int state = state_.load(); state == kHalf || state == kReady;) {
    if (state_.compare_exchange_weak(state, kGivenUp)) break;
  }
  event_.wait_until([&] { return state_.load() != kCopying; });
  if (state_.load() == kDone) stream.compute_waits_for(done_);
}

}  // namespace teratron

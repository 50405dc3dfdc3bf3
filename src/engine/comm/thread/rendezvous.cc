#include "comm/thread/rendezvous.h"

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

Rendezvous::Rendezvous(ThreadWorld& world, EventCount& event, const std::vector<int>& members,
                       const CollectiveCall& call)
    : world_(world),
      event_(event),
      members_(members),
      call_(call),
      contributions_(members.size()),
      done_(members.size()),
      has_entered_(members.size()) {}

bool Rendezvous::join(int rank, const CollectiveCall& call, const Contribution& contribution) {
  if (joined_ == 0) first_ = rank;
  if (!(call == call_)) {
    throw InternalError(fmt::format("ranks of one group call different collectives: rank {} {}, rank {} {}",
                                    members_[static_cast<std::size_t>(first_)], call_.to_string(),
                                    members_[static_cast<std::size_t>(rank)], call.to_string()));
  }
  contributions_[static_cast<std::size_t>(rank)] = contribution;
  if (++joined_ < size()) return false;
  all_have_come_.store(true);
  return true;
}

bool Rendezvous::take_part_early(int rank, const Part& part) {
  if (!all_have_come_.load()) return false;
  const std::lock_guard lock(early_);
  if (!withdrawn_) done_[static_cast<std::size_t>(rank)] = part();
  return !withdrawn_;
}

std::vector<CommunicationStream::EventPtr> Rendezvous::withdraw() {
  const std::lock_guard lock(early_);
  withdrawn_ = true;
  return done_;
}

int Rendezvous::ended_member() const {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (world_.has_ended(members_[rank]) && !has_entered_[rank].load()) return static_cast<int>(rank);
  }
  return -1;
}

bool Rendezvous::give_up() {
  int entered = entered_.load();
  while (entered != size() && entered != kGivenUp) {
    if (entered_.compare_exchange_weak(entered, kGivenUp)) return true;
  }
  return entered == kGivenUp;
}

void Rendezvous::enter(int rank) {
  has_entered_[static_cast<std::size_t>(rank)].store(true);
  int entered = entered_.load();
  while (entered != kGivenUp && !entered_.compare_exchange_weak(entered, entered + 1)) {
  }
  if (entered + 1 == size()) return event_.notify_all();
  event_.wait_until([&] {
    const int now = entered_.load();
    return now == size() || now == kGivenUp || world_.failed() || ended_member() >= 0;
  });
  if (!give_up()) return;
  // Another may have given up for both, and be about to say why.
  event_.wait_until([&] { return world_.failed() || ended_member() >= 0; });
  if (const int ended = ended_member(); ended >= 0) {
    world_.fail(members_[static_cast<std::size_t>(ended)],
                fmt::format("it ended while rank {} waits for it in {}", members_[static_cast<std::size_t>(rank)],
                            call_.to_string()));
  }
  world_.throw_lost_rank();
}

void Rendezvous::finish(int rank, CommunicationStream::EventPtr done) {
  done_[static_cast<std::size_t>(rank)] = std::move(done);
  leave();
  if (!incomplete_.load()) return;
  event_.wait_until([&] { return world_.failed(); });
  world_.throw_lost_rank();
}

void Rendezvous::give_up_part() {
  incomplete_.store(true);
  leave();
}

void Rendezvous::leave() {
  if (finished_.fetch_add(1) + 1 == size()) return event_.notify_all();
  event_.wait_until([&] { return finished_.load() == size(); });
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
  event_.wait_until(peer_is_lost);  // a peer that withdrew is about to say why
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

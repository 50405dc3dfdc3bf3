#include "comm/thread/meeting.h"

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

Meeting::Meeting(Team& team, Bell& bell, const std::vector<int>& members, const CollectiveCall& call)
    : team_(team),
      bell_(bell),
      members_(members),
      call_(call),
      contributions_(members.size()),
      done_(members.size()),
      has_entered_(members.size()) {}

bool Meeting::join(int rank, const CollectiveCall& call, const Contribution& contribution) {
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

bool Meeting::take_part_early(int rank, const Part& part) {
  if (!all_have_come_.load()) return false;
  const std::lock_guard lock(early_);
  if (!withdrawn_) done_[static_cast<std::size_t>(rank)] = part();
  return !withdrawn_;
}

std::vector<CommunicationStream::EventPtr> Meeting::withdraw() {
  const std::lock_guard lock(early_);
  withdrawn_ = true;
  return done_;
}

int Meeting::ended_member() const {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (team_.has_ended(members_[rank]) && !has_entered_[rank].load()) return static_cast<int>(rank);
  }
  return -1;
}

bool Meeting::give_up() {
  int entered = entered_.load();
  while (entered != size() && entered != kGivenUp) {
    if (entered_.compare_exchange_weak(entered, kGivenUp)) return true;
  }
  return entered == kGivenUp;
}

void Meeting::enter(int rank) {
  has_entered_[static_cast<std::size_t>(rank)].store(true);
  int entered = entered_.load();
  while (entered != kGivenUp && !entered_.compare_exchange_weak(entered, entered + 1)) {
  }
  if (entered + 1 == size()) return bell_.ring();
  bell_.wait_until([&] {
    const int now = entered_.load();
    return now == size() || now == kGivenUp || team_.failed() || ended_member() >= 0;
  });
  if (!give_up()) return;
  // Another may have given up for both, and be about to say why.
  bell_.wait_until([&] { return team_.failed() || ended_member() >= 0; });
  if (const int ended = ended_member(); ended >= 0) {
    team_.fail(members_[static_cast<std::size_t>(ended)],
               fmt::format("it ended while rank {} waits for it in {}", members_[static_cast<std::size_t>(rank)],
                           call_.to_string()));
  }
  team_.throw_lost_rank();
}

void Meeting::finish(int rank, CommunicationStream::EventPtr done) {
  done_[static_cast<std::size_t>(rank)] = std::move(done);
  leave();
  if (!incomplete_.load()) return;
  bell_.wait_until([&] { return team_.failed(); });
  team_.throw_lost_rank();
}

void Meeting::give_up_part() {
  incomplete_.store(true);
  leave();
}

void Meeting::leave() {
  if (finished_.fetch_add(1) + 1 == size()) return bell_.ring();
  bell_.wait_until([&] { return finished_.load() == size(); });
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
  if (state_.compare_exchange_strong(half, kReady)) bell_.ring();
}

void Message::copy(CommunicationStream& stream) {
  try {
    for (const CommunicationStream::EventPtr& ready : ready_) stream.wait_for(ready);
    stream.copy(static_cast<std::byte*>(views_[1].data), static_cast<const std::byte*>(views_[0].data),
                views_[0].bytes());
    done_ = stream.record();
  } catch (...) {
    state_.store(kGivenUp);  // the peer waits for this rank to be lost
    bell_.ring();
    throw;
  }
  state_.store(kDone);
  bell_.ring();
}

void Message::wait(bool sends, CommunicationStream& stream) {
  const int peer = ends_[sends ? 1 : 0];
  const auto peer_is_lost = [&] { return team_.failed() || team_.has_ended(peer); };
  bell_.wait_until([&] { return state_.load() != kHalf || peer_is_lost(); });
  int state = kHalf;
  state_.compare_exchange_strong(state, kGivenUp);  // in vain where the peer came
  if (state == kReady && state_.compare_exchange_strong(state, kCopying)) copy(stream);
  bell_.wait_until([&] { return state_.load() != kCopying; });
  if (state_.load() == kDone) return stream.compute_waits_for(done_);
  bell_.wait_until(peer_is_lost);  // a peer that withdrew is about to say why
  team_.fail(peer,
             fmt::format("it ended while rank {} waits for its {}", ends_[sends ? 0 : 1], sends ? "receive" : "send"));
  team_.throw_lost_rank();
}

void Message::withdraw(CommunicationStream& stream) {
  for (int state = state_.load(); state == kHalf || state == kReady;) {
    if (state_.compare_exchange_weak(state, kGivenUp)) break;
  }
  bell_.wait_until([&] { return state_.load() != kCopying; });
  if (state_.load() == kDone) stream.compute_waits_for(done_);
}

}  // namespace teratron

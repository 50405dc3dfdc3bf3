// Rendezvous: one collective of a group of threads. Message: one message between two of them. They hold each member's
// views and progress.
//
// A Rendezvous has two barriers. Other ranks access a member's memory only between them, and no member leaves between
// them, so a failure elsewhere never frees memory under a reader. One count, arrived_, passes both: it is `size` when
// all have entered, and twice that when all have finished.
//
//   call of each member          sets                                 returns
//   join                         joined_ + 1                          at once
//   take_part_early (devices)    its event, if all have joined        at once
//   enter                        arrived_ + 1                         when arrived_ >= size, the first barrier
//                                or arrived_ = kGivenUp               throws LostRank: a member failed or ended
//   (its part of the collective)
//   finish                       its event, arrived_ + 1              when arrived_ == 2 size, the second barrier;
//                                                                     throws LostRank if a member gave up its part
//   give_up_part                 that it did, arrived_ + 1            when arrived_ == 2 size
//   withdraw (any time before)   withdrawn_                           at once; no part begins early from then on
//
// For device memory, the hosts queue the work between the barriers. Events order it after the views are ready, and
// later work after it. A member that finds that all have joined queues its part before enter(), so that its device
// works meanwhile.
//
// The states of a Message, each change an atomic exchange:
//
//   kHalf --both have come--> kReady --one waits--> kCopying --copied--> kDone
//     |                         |                      |
//     +--its peer is lost, or this side withdraws------+--the copy throws--> kGivenUp
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/thread/event_count.h"
#include "comm/thread/thread_world.h"

namespace teratron {

// Arguments that all members must agree on.
struct CollectiveCall {
  Collective collective;
  DType dtype = DType::kU8;
  std::int64_t elements = 0;  // of the smaller view
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  bool operator==(const CollectiveCall&) const = default;
  std::string to_string() const;
};

struct Contribution {
  TensorRef out, in;                    // the same where the collective has one view
  CommunicationStream::EventPtr ready;  // when they may be read and written
  const std::string* text = nullptr;
};

class Rendezvous {
 public:
  // `ranks` of the world that are its members.
  Rendezvous(ThreadWorld& world, EventCount& event, const std::vector<int>& ranks, const CollectiveCall& call);

  // True if all have called. InternalError: the first member to join made another call.
  bool join(int rank, const CollectiveCall& call, const Contribution& contribution);

  // Called for devices before enter(): queues this member's part if all have joined and none withdrew.
  using Part = std::function<CommunicationStream::EventPtr()>;  // returns the event of its end
  void take_part_early(int rank, const Part& part);
  // This member will not finish, and will free its memory: no part begins from now on. Returns the events at which the
  // parts that have begun end.
  std::vector<CommunicationStream::EventPtr> withdraw();

  // Returns when all have entered; LostRank if one never will. The caller must then call finish() or give_up_part().
  void enter(int rank);
  // `done`: the event of the end of this member's part. LostRank if a member gave up its part.
  void finish(int rank, CommunicationStream::EventPtr done);
  void give_up_part(int rank);  // instead of finish(), before the exception with the reason

  const CollectiveCall& call() const { return call_; }
  int size() const { return static_cast<int>(members_.size()); }
  const Contribution& from(int rank) const { return members_[static_cast<std::size_t>(rank)].contribution; }
  const CommunicationStream::EventPtr& done(int rank) const { return members_[static_cast<std::size_t>(rank)].done; }

 private:
  struct Member {
    Contribution contribution;
    CommunicationStream::EventPtr done;
    bool gave_up = false;
  };
  static constexpr int kGivenUp = -1;
  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  int world_rank(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  std::optional<int> ended_rank() const;
  void leave();

  ThreadWorld& world_;
  EventCount& event_;
  const std::vector<int>& ranks_;
  const CollectiveCall call_;
  std::vector<Member> members_;  // each is written by its rank, and read by others after a barrier or under mutex_
  std::mutex mutex_;             // over what follows but arrived_, and over parts that are taken early
  int joined_ = 0, first_ = 0;
  bool withdrawn_ = false;
  std::atomic<int> arrived_{0};
};

// A send and its receive. After both have started, the first of the two that waits makes the copy.
class Message {
 public:
  Message(ThreadWorld& world, EventCount& event, int sender, int receiver)
      : world_(world), event_(event), ends_{sender, receiver} {}

  // Under the group's lock. InternalError: the two views differ in type or size.
  void bring(bool sends, const TensorRef& view, CommunicationStream::EventPtr ready);
  // On the caller's own stream.
  void wait(bool sends, CommunicationStream& stream);
  void withdraw(CommunicationStream& stream);  // this side's view is about to go away

 private:
  enum State : int { kHalf, kReady, kCopying, kDone, kGivenUp };

  void copy(CommunicationStream& stream);

  ThreadWorld& world_;
  EventCount& event_;
  const int ends_[2];  // ranks of the world
  TensorRef views_[2];
  CommunicationStream::EventPtr ready_[2], done_;
  std::atomic<int> state_{kHalf};
};

}  // namespace teratron

// Rendezvous: one collective of a group of threads. Message: one message between two of them. They hold each member's
// views and progress.
//
// A Rendezvous has two barriers. Other ranks access a member's memory only between them, and no member leaves between
// them, so a failure elsewhere never frees memory under a reader.
//
//   call of each member          sets                                 returns
//   join (group's lock)          joined_; the last: all_have_come_    at once
//   take_part_early (devices)    done_[rank], under early_            at once
//   enter                        has_entered_[rank], entered_ + 1     when entered_ == size, the first barrier
//                                or entered_ = kGivenUp               throws LostRank: a member failed or ended
//   (its part of the collective)
//   finish                       done_[rank], finished_ + 1           when finished_ == size, the second barrier;
//                                                                     throws LostRank if incomplete_
//   give_up_part                 incomplete_, finished_ + 1           when finished_ == size
//   withdraw (any time before)   withdrawn_, under early_             at once; no part begins early from then on
//
// For device memory, the hosts queue the work between the barriers. Events order it after the views are ready, and
// later work after it. A member that finds all_have_come_ queues its part before enter(), so that its device works
// meanwhile.
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
#include <span>
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
  // `members` are ranks of the world.
  Rendezvous(ThreadWorld& world, EventCount& event, const std::vector<int>& members, const CollectiveCall& call);

  // Under the group's lock. True if all have called. InternalError: the first member to join made another call.
  bool join(int rank, const CollectiveCall& call, const Contribution& contribution);

  // Called for devices before enter(): queues this member's part if all have called. False if not, or if one withdrew.
  using Part = std::function<CommunicationStream::EventPtr()>;  // returns the event of its end
  bool take_part_early(int rank, const Part& part);
  // This member will not finish, and frees its memory: no part begins from now on. Returns when those that began end.
  std::vector<CommunicationStream::EventPtr> withdraw();

  // Returns when all have entered; LostRank if one never will. finish() follows, and returns when all have called it,
  // whatever else fails.
  void enter(int rank);
  // `done`: the event of the end of this member's part. LostRank if a member gave up its part.
  void finish(int rank, CommunicationStream::EventPtr done);
  void give_up_part();  // instead of finish(), before the exception that says why

  const CollectiveCall& call() const { return call_; }
  int size() const { return static_cast<int>(members_.size()); }
  const Contribution& from(int rank) const { return contributions_[static_cast<std::size_t>(rank)]; }
  std::span<const CommunicationStream::EventPtr> done() const { return done_; }  // of all members; valid after finish()

 private:
  static constexpr int kGivenUp = -1;
  int ended_member() const;  // a rank of the group that will never enter, or -1
  bool give_up();
  void leave();

  ThreadWorld& world_;
  EventCount& event_;
  const std::vector<int>& members_;
  const CollectiveCall call_;
  int joined_ = 0, first_ = 0;
  std::vector<Contribution> contributions_;
  std::mutex early_;  // over parts that are taken early, and withdrawing
  bool withdrawn_ = false;
  std::atomic<bool> all_have_come_{false};
  std::vector<CommunicationStream::EventPtr> done_;
  std::vector<std::atomic<bool>> has_entered_;
  std::atomic<int> entered_{0}, finished_{0};
  std::atomic<bool> incomplete_{false};
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

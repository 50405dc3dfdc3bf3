// One collective of a group of threads, and one message between two of them: what each member brought, and how far
// they are. A member's memory is touched by others only between "all have come" and "all are done", and nobody leaves
// in between, so a failure elsewhere never takes memory away from under a reader. Where memory is a device's, hosts
// queue the work then, between events that say when what was brought is there and when everyone's work is done; a
// member that finds all have come need not wait to be waited for, so that its device works beside what it computes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/thread/bell.h"
#include "comm/thread/team.h"

namespace teratron {

// What all members must agree about.
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

class Meeting {
 public:
  // `members` are ranks of the team.
  Meeting(Team& team, Bell& bell, const std::vector<int>& members, const CollectiveCall& call);

  // Under the group's lock. InternalError: another call than the member who was here first made. True when everyone has
  // called.
  bool join(int rank, const CollectiveCall& call, const Contribution& contribution);

  // Of devices, before enter(): queues this member's part if all have called; false where not, or where one withdrew.
  using Part = std::function<CommunicationStream::EventPtr()>;  // tells when it is done
  bool take_part_early(int rank, const Part& part);
  // This member will not finish, and its memory goes away: nobody begins from now on. When those who did are done.
  std::vector<CommunicationStream::EventPtr> withdraw();

  // Returns when everyone has entered; LostRank where that will not happen. After enter() comes finish(), which
  // returns when everyone got there, whatever else fails.
  void enter(int rank);
  // `done`: when this member's part is. LostRank where a member gave up its part.
  void finish(int rank, CommunicationStream::EventPtr done);
  void give_up_part();  // instead of finish(), before the exception that says why

  const CollectiveCall& call() const { return call_; }
  int size() const { return static_cast<int>(members_.size()); }
  const Contribution& from(int rank) const { return contributions_[static_cast<std::size_t>(rank)]; }
  std::span<const CommunicationStream::EventPtr> done() const { return done_; }  // of everyone; after finish()

 private:
  static constexpr int kGivenUp = -1;
  int ended_member() const;  // a rank of the group that will never enter, or -1
  bool give_up();
  void leave();

  Team& team_;
  Bell& bell_;
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

// A send and its receive. Whichever of the two comes to wait first after both have started copies for both.
class Message {
 public:
  Message(Team& team, Bell& bell, int sender, int receiver) : team_(team), bell_(bell), ends_{sender, receiver} {}

  // Under the group's lock. InternalError: the two views differ in type or size.
  void bring(bool sends, const TensorRef& view, CommunicationStream::EventPtr ready);
  // On the caller's own stream.
  void wait(bool sends, CommunicationStream& stream);
  void withdraw(CommunicationStream& stream);  // this side's view is about to go away

 private:
  enum State : int { kHalf, kReady, kCopying, kDone, kGivenUp };

  void copy(CommunicationStream& stream);

  Team& team_;
  Bell& bell_;
  const int ends_[2];  // ranks of the team
  TensorRef views_[2];
  CommunicationStream::EventPtr ready_[2], done_;
  std::atomic<int> state_{kHalf};
};

}  // namespace teratron

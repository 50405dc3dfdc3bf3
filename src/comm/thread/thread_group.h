// ThreadGroup: where the members of one group of threads find each other. Collectives are matched by the order in which
// each member starts them, messages by the order between their two ends.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/thread/meeting.h"
#include "comm/thread/team.h"

namespace teratron {

class ThreadGroup {
 public:
  // `members`: their ranks in the team, by rank in this group.
  ThreadGroup(std::shared_ptr<Team> team, std::vector<int> members);

  Team& team() { return *team_; }
  int size() const { return static_cast<int>(members_.size()); }
  int team_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  // The caller's `number`-th collective in this group.
  std::shared_ptr<Meeting> join(std::int64_t number, int rank, const CollectiveCall& call,
                                const Contribution& contribution);
  std::shared_ptr<Message> send_or_receive(int sender, int receiver, bool sends, const TensorRef& view,
                                           CommunicationStream::EventPtr ready);

  // The group of `members` (ranks here) that their `number`-th split makes; the same one for each of them.
  std::shared_ptr<ThreadGroup> part(std::int64_t number, const std::vector<int>& members);

 private:
  struct Conversation {  // from one member to another: calls that the other side has yet to make
    std::int64_t sends = 0, receives = 0;
    std::map<std::int64_t, std::shared_ptr<Message>> open;
  };
  struct Part {
    std::shared_ptr<ThreadGroup> group;
    std::size_t taken = 0;
  };

  const std::shared_ptr<Team> team_;
  const std::vector<int> members_;
  const std::shared_ptr<Bell> bell_;
  std::mutex mutex_;  // over what follows, and over joining
  std::map<std::int64_t, std::shared_ptr<Meeting>> meetings_;
  std::map<std::pair<int, int>, Conversation> conversations_;
  std::map<std::pair<std::int64_t, int>, Part> parts_;  // by number and first member
};

}  // namespace teratron

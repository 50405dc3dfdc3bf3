// ThreadGroup: matches the calls of the members of one group of threads. Collectives are matched by the order in which
// each member starts them, messages by the order between their two ends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "comm/thread/rendezvous.h"
#include "comm/thread/thread_world.h"
#include "comm/watch.h"

namespace teratron {

class ThreadGroup {
 public:
  // `members`: their ranks in the world, by rank in this group.
  ThreadGroup(std::shared_ptr<ThreadWorld> world, std::vector<int> members);

  ThreadWorld& world() { return *world_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return members_[static_cast<std::size_t>(rank)]; }

  // The caller's `number`-th collective in this group.
  std::shared_ptr<Rendezvous> join(std::int64_t number, int rank, const CollectiveCall& call,
                                   const Contribution& contribution);
  std::shared_ptr<Message> send_or_receive(int sender, int receiver, bool sends, const TensorRef& view,
                                           CommunicationStream::EventPtr ready);

  // The group of `members` (ranks here) that their `number`-th split makes; the same one for each of them.
  std::shared_ptr<ThreadGroup> part(std::int64_t number, const std::vector<int>& members);

 private:
  struct MessageQueue {  // from one member to another: calls whose other side is missing
    std::int64_t sends = 0, receives = 0;
    std::map<std::int64_t, std::shared_ptr<Message>> open;
  };
  struct Part {
    std::shared_ptr<ThreadGroup> group;
    std::size_t taken = 0;
  };

  const std::shared_ptr<ThreadWorld> world_;
  const std::vector<int> members_;
  const std::shared_ptr<EventCount> event_;
  std::mutex mutex_;  // over what follows, and over joining
  std::map<std::int64_t, std::shared_ptr<Rendezvous>> rendezvous_;
  std::map<std::pair<int, int>, MessageQueue> queues_;
  std::map<std::pair<std::int64_t, int>, Part> parts_;  // by number and first member
};

// One rank's end of a group, for the thread that is that rank. Ranks read each other's memory.
std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<ThreadGroup> group, int rank);

// Runs body once a rank, each on a thread of its own that may use an even share of the caller's thread_count(). The
// first failure is rethrown when all have ended. `watch`: when a thread of its own takes ranks to stand; it then calls
// `end_process`, which gets the message and does not return.
void run_thread_ranks(int ranks, const std::string& host, const WatchSettings& watch,
                      const std::function<void(const std::string& message)>& end_process,
                      const std::function<void(Communicator& world)>& body);

}  // namespace teratron

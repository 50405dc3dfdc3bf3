#include "comm/thread/thread_group.h"

namespace teratron {

ThreadGroup::ThreadGroup(std::shared_ptr<ThreadWorld> world, std::vector<int> members)
    : world_(std::move(world)), members_(std::move(members)), event_(world_->make_event_count()) {}

std::shared_ptr<Rendezvous> ThreadGroup::join(std::int64_t number, int rank, const CollectiveCall& call,
                                              const Contribution& contribution) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Rendezvous>& entry = rendezvous_[number];
  if (!entry) entry = std::make_shared<Rendezvous>(*world_, *event_, members_, call);
  const std::shared_ptr<Rendezvous> rendezvous = entry;
  if (rendezvous->join(rank, call, contribution)) rendezvous_.erase(number);
  return rendezvous;
}

std::shared_ptr<Message> ThreadGroup::send_or_receive(int sender, int receiver, bool sends, const TensorRef& view,
                                                      CommunicationStream::EventPtr ready) {
  const std::lock_guard lock(mutex_);
  MessageQueue& queue = queues_[{sender, receiver}];
  const std::int64_t number = sends ? queue.sends++ : queue.receives++;
  std::shared_ptr<Message>& entry = queue.open[number];
  const bool first = !entry;
  if (first) entry = std::make_shared<Message>(*world_, *event_, world_rank(sender), world_rank(receiver));
  const std::shared_ptr<Message> message = entry;
  if (!first) queue.open.erase(number);
  message->bring(sends, view, std::move(ready));
  return message;
}

std::shared_ptr<ThreadGroup> ThreadGroup::part(std::int64_t number, const std::vector<int>& members) {
  std::vector<int> world_ranks;
  for (const int member : members) world_ranks.push_back(world_rank(member));
  const std::lock_guard lock(mutex_);
  Part& part = parts_[{number, members.front()}];
  if (!part.group) part.group = std::make_shared<ThreadGroup>(world_, std::move(world_ranks));
  const std::shared_ptr<ThreadGroup> group = part.group;
  if (++part.taken == members.size()) parts_.erase({number, members.front()});
  return group;
}

}  // namespace teratron

#include "comm/thread/thread_group.h"

namespace teratron {

ThreadGroup::ThreadGroup(std::shared_ptr<Team> team, std::vector<int> members)
    : team_(std::move(team)), members_(std::move(members)), bell_(team_->make_bell()) {}

std::shared_ptr<Meeting> ThreadGroup::join(std::int64_t number, int rank, const CollectiveCall& call,
                                           const Contribution& contribution) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Meeting>& entry = meetings_[number];
  if (!entry) entry = std::make_shared<Meeting>(*team_, *bell_, members_, call);
  const std::shared_ptr<Meeting> meeting = entry;
  if (meeting->join(rank, call, contribution)) meetings_.erase(number);
  return meeting;
}

std::shared_ptr<Message> ThreadGroup::send_or_receive(int sender, int receiver, bool sends, const TensorRef& view,
                                                      CommunicationStream::EventPtr ready) {
  const std::lock_guard lock(mutex_);
  Conversation& conversation = conversations_[{sender, receiver}];
  const std::int64_t number = sends ? conversation.sends++ : conversation.receives++;
  std::shared_ptr<Message>& entry = conversation.open[number];
  const bool first = !entry;
  if (first) entry = std::make_shared<Message>(*team_, *bell_, team_rank(sender), team_rank(receiver));
  const std::shared_ptr<Message> message = entry;
  if (!first) conversation.open.erase(number);
  message->bring(sends, view, std::move(ready));
  return message;
}

std::shared_ptr<ThreadGroup> ThreadGroup::part(std::int64_t number, const std::vector<int>& members) {
  std::vector<int> team_ranks;
  for (const int member : members) team_ranks.push_back(team_rank(member));
  const std::lock_guard lock(mutex_);
  Part& part = parts_[{number, members.front()}];
  if (!part.group) part.group = std::make_shared<ThreadGroup>(team_, std::move(team_ranks));
  const std::shared_ptr<ThreadGroup> group = part.group;
  if (++part.taken == members.size()) parts_.erase({number, members.front()});
  return group;
}

}  // namespace teratron

#include "comm/tcp/tcp_transport.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "comm/tcp/connection.h"
#include "comm/tcp/scattered_broadcast.h"

namespace teratron {
namespace {

// How often a waiting rank looks before it sleeps until something comes, and how long it sleeps before it looks for
// lost ranks again. With more ranks than cores it is others who have something to do.
constexpr int kLooks = 1000, kLooksCrowded = 1;
constexpr int kSleep = 20;  // milliseconds
// A connection that broke was closed by the end of a process, which is known soon.
constexpr auto kVerdict = std::chrono::seconds(3);

// Those of a process with all others.
class Connections {
 public:
  Connections(std::vector<Socket> sockets, Liveness& liveness) : liveness_(liveness) {
    for (Socket& socket : sockets) {
      waits_.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
      connections_.emplace_back(std::move(socket));
    }
  }
  Connection& with(int rank) { return connections_[static_cast<std::size_t>(rank)]; }
  Liveness& liveness() { return liveness_; }

  // Moves what can be moved, after waiting for something to move for `longest` milliseconds. Whether anything did.
  bool progress(int longest) {
    for (std::size_t rank = 0; rank < waits_.size(); ++rank) {
      waits_[rank].fd = connections_[rank].descriptor();
      waits_[rank].events = static_cast<short>(connections_[rank].has_to_write() ? POLLIN | POLLOUT : POLLIN);
    }
    if (::poll(waits_.data(), waits_.size(), longest) <= 0) return false;
    bool moved = false;
    for (std::size_t rank = 0; rank < waits_.size(); ++rank) {
      if (waits_[rank].fd < 0 || waits_[rank].revents == 0) continue;
      // Reading comes first: it makes room at the other side.
      if ((waits_[rank].revents & ~POLLOUT) != 0) moved |= connections_[rank].read_some();
      if (connections_[rank].has_to_write()) moved |= connections_[rank].write_some();
    }
    return moved;
  }
  void give_up() {
    for (Connection& connection : connections_) connection.give_up();
  }
  // For a group that is being made: larger than those of all groups that this process is in.
  std::uint32_t next_group = 1;

 private:
  Liveness& liveness_;
  std::vector<Connection> connections_;
  std::vector<pollfd> waits_;
};

struct TcpGroup {
  std::shared_ptr<Connections> connections;
  std::vector<int> members;  // ranks in the world, by rank in the group
  std::uint32_t number = 0;  // no two groups that share two ranks have the same
};

class TcpRequests final : public Requests {
 public:
  TcpRequests(std::shared_ptr<const TcpGroup> group, RequestKind kind) : group_(std::move(group)), kind_(kind) {}
  TcpRequests(const TcpRequests&) = delete;
  TcpRequests& operator=(const TcpRequests&) = delete;
  ~TcpRequests() override {
    if (!is_done()) group_->connections->give_up();
  }

  void send(const void* from, std::int64_t bytes, int to, int tag) override {
    if (bytes > 0) connection(to).send(next(const_cast<void*>(from), bytes, to, tag));
  }
  void receive(void* to, std::int64_t bytes, int from, int tag) override {
    if (bytes > 0) connection(from).receive(next(to, bytes, from, tag));
  }
  void wait() override;

 private:
  Connection& connection(int member) {
    return group_->connections->with(group_->members[static_cast<std::size_t>(member)]);
  }
  Transfer& next(void* data, std::int64_t bytes, int member, int tag) {
    under_way_.push_back({{.envelope = {.group = group_->number,
                                        .kind = static_cast<std::uint16_t>(kind_),
                                        .tag = static_cast<std::uint16_t>(tag),
                                        .bytes = bytes},
                           .data = static_cast<std::byte*>(data)},
                          member});
    return under_way_.back().message;
  }
  bool is_done() {
    while (!under_way_.empty() && under_way_.front().message.is_done) under_way_.pop_front();
    return under_way_.empty();
  }
  void look_for_broken();

  struct Exchange {
    Transfer message;
    int member;  // the other one
  };
  const std::shared_ptr<const TcpGroup> group_;
  const RequestKind kind_;
  std::deque<Exchange> under_way_;
};

void TcpRequests::wait() {
  Liveness& liveness = group_->connections->liveness();
  const int most = liveness.crowded() ? kLooksCrowded : kLooks;
  for (int looks = 0; !is_done();) {
    liveness.throw_if_lost();
    if (group_->connections->progress(looks < most ? 0 : kSleep)) {
      looks = 0;
    } else {
      ++looks;
      look_for_broken();
    }
  }
}

// A connection that broke matters where something is still to come through it: whoever ended in good order has closed
// its own, too.
void TcpRequests::look_for_broken() {
  for (const Exchange& exchange : under_way_) {
    if (exchange.message.is_done || !connection(exchange.member).is_broken()) continue;
    Liveness& liveness = group_->connections->liveness();
    liveness.await_verdict(kVerdict);
    liveness.throw_unreachable(group_->members[static_cast<std::size_t>(exchange.member)], "its connection broke");
  }
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(TcpGroup group, int rank) : group_(std::make_shared<TcpGroup>(std::move(group))), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->members.size()); }
  std::unique_ptr<Requests> requests(RequestKind kind) override { return std::make_unique<TcpRequests>(group_, kind); }
  std::unique_ptr<Pending::Work> start_broadcast(void* data, std::int64_t bytes, int root, int tag) override {
    return std::make_unique<ScatteredBroadcast>(*this, data, bytes, root, tag);
  }
  std::unique_ptr<Transport> split(const std::vector<int>& members) override;

 private:
  const std::shared_ptr<const TcpGroup> group_;
  const int rank_;
};

std::unique_ptr<Transport> TcpTransport::split(const std::vector<int>& members) {
  constexpr int kTag = 1 << 15;  // no collective has it
  std::vector<std::uint32_t> numbers(members.size(), group_->connections->next_group);
  const std::uint32_t own = group_->connections->next_group;
  TcpRequests exchange(group_, RequestKind::kCollective);
  TcpGroup group{.connections = group_->connections, .members = {}};
  int own_rank = 0;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    group.members.push_back(group_->members[static_cast<std::size_t>(members[rank])]);
    if (members[rank] == rank_) {
      own_rank = static_cast<int>(rank);
    } else {
      exchange.receive(&numbers[rank], sizeof(own), members[rank], kTag);
      exchange.send(&own, sizeof(own), members[rank], kTag);
    }
  }
  exchange.wait();
  group.number = std::ranges::max(numbers);
  group_->connections->next_group = group.number + 1;
  return std::make_unique<TcpTransport>(std::move(group), own_rank);
}

}  // namespace

std::unique_ptr<Transport> make_tcp_world(std::vector<Socket> sockets, int rank, Liveness& liveness) {
  std::vector<int> everyone(sockets.size());
  std::iota(everyone.begin(), everyone.end(), 0);
  TcpGroup world{.connections = std::make_shared<Connections>(std::move(sockets), liveness),
                 .members = std::move(everyone)};
  return std::make_unique<TcpTransport>(std::move(world), rank);
}

}  // namespace teratron

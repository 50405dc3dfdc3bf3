// What carries the bytes of a group of processes: MPI (comm/mpi) or connections of our own (comm/tcp). It knows ranks,
// tags and bytes; what they mean is for process_communicator.h. Used by the rank's own thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace teratron {

// Messages of one never match receives of the other.
enum class RequestKind : std::uint8_t { kCollective, kMessage };

// Messages under way of one kind in a group. A receive takes the oldest message of its sender that has its tag and
// that no other receive has taken; it is as long as the receive says. Messages may come before their receive.
class Requests {
 public:
  // Those still under way are abandoned: that only happens where ranks are lost and the process will end.
  virtual ~Requests() = default;

  // The memory belongs to the message until wait() returns. Tags are from 0 to 32767.
  virtual void send(const void* from, std::int64_t bytes, int to, int tag) = 0;
  virtual void receive(void* to, std::int64_t bytes, int from, int tag) = 0;
  virtual void wait() = 0;  // until all are done; LostRank
};

// All of some requests.
class RequestsWork final : public Pending::Work {
 public:
  explicit RequestsWork(std::unique_ptr<Requests> requests) : requests_(std::move(requests)) {}
  void wait() override { requests_->wait(); }

 private:
  const std::unique_ptr<Requests> requests_;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;  // of the caller within the group
  virtual int size() const = 0;

  virtual std::unique_ptr<Requests> requests(RequestKind kind) = 0;
  // Every member calls it, with one tag of collectives, in the same order among its broadcasts.
  virtual std::unique_ptr<Pending::Work> start_broadcast(void* data, std::int64_t bytes, int root, int tag) = 0;
  // The group of these members, by their rank there, the caller among them. Every one of them calls it.
  virtual std::unique_ptr<Transport> split(const std::vector<int>& members) = 0;
};

}  // namespace teratron

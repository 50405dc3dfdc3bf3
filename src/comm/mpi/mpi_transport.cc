#include "comm/mpi/mpi_transport.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace teratron {
namespace {

// A broadcast or message of more bytes than MPI's int counts goes in pieces of this many.
constexpr std::int64_t kLongestMessage = std::int64_t{1} << 30;

// Calls piece(first byte, bytes) for pieces that MPI can count.
template <class Piece>
void in_pieces(std::int64_t bytes, const Piece& piece) {
  for (std::int64_t begin = 0; begin < bytes; begin += kLongestMessage) {
    piece(begin, static_cast<int>(std::min(kLongestMessage, bytes - begin)));
  }
}

// Leaves the core to others the longer nothing comes, and soon where there are more ranks than cores.
void pause_after(int looks, bool crowded) {
  if (looks > 200000) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  } else if (looks > (crowded ? 20 : 20000)) {
    ::sched_yield();
  }
}

class MpiRequests final : public Requests {
 public:
  MpiRequests(MPI_Comm communicator, const Liveness& liveness) : communicator_(communicator), liveness_(liveness) {}

  void send(const void* from, std::int64_t bytes, int to, int tag) override {
    in_pieces(bytes, [&](std::int64_t begin, int count) {
      check_mpi(MPI_Isend(static_cast<const std::byte*>(from) + begin, count, MPI_BYTE, to, tag, communicator_, next()),
                "send");
    });
  }
  void receive(void* to, std::int64_t bytes, int from, int tag) override {
    in_pieces(bytes, [&](std::int64_t begin, int count) {
      check_mpi(MPI_Irecv(static_cast<std::byte*>(to) + begin, count, MPI_BYTE, from, tag, communicator_, next()),
                "receive");
    });
  }
  void broadcast(void* data, std::int64_t bytes, int root) {
    in_pieces(bytes, [&](std::int64_t begin, int count) {
      check_mpi(MPI_Ibcast(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, root, communicator_, next()),
                "broadcast");
    });
  }
  void wait() override;

 private:
  MPI_Request* next() {
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }

  const MPI_Comm communicator_;
  const Liveness& liveness_;
  std::vector<MPI_Request> requests_;
};

void MpiRequests::wait() {
  for (int looks = 0;; ++looks) {
    liveness_.throw_if_lost();
    int done = 0;
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) {
      liveness_.await_verdict(Liveness::kVerdict);
      check_mpi(code, "complete its messages");
    }
    if (done != 0) return requests_.clear();
    pause_after(looks, liveness_.crowded());
  }
}

// One MPI communicator for collectives and one for the caller's own messages. Neither is ever freed: freeing waits for
// all members, who may be gone, and a run makes only a few.
struct MpiGroup {
  MPI_Comm collectives = MPI_COMM_NULL, messages = MPI_COMM_NULL;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport(MpiGroup group, Liveness& liveness) : group_(group), liveness_(liveness) {
    for (MPI_Comm communicator : {group_.collectives, group_.messages}) {
      check_mpi(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "set how errors are told");
    }
    check_mpi(MPI_Comm_rank(group_.collectives, &rank_), "tell the rank");
    check_mpi(MPI_Comm_size(group_.collectives, &size_), "tell the group's size");
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::unique_ptr<Requests> requests(RequestKind kind) override {
    return std::make_unique<MpiRequests>(kind == RequestKind::kCollective ? group_.collectives : group_.messages,
                                         liveness_);
  }
  std::unique_ptr<Pending::Work> start_broadcast(void* data, std::int64_t bytes, int root, int /*tag*/) override {
    auto requests = std::make_unique<MpiRequests>(group_.collectives, liveness_);
    requests->broadcast(data, bytes, root);
    return std::make_unique<RequestsWork>(std::move(requests));
  }
  std::unique_ptr<Transport> split(const std::vector<int>& members) override;

 private:
  const MpiGroup group_;
  Liveness& liveness_;
  int rank_ = 0, size_ = 1;
};

std::unique_ptr<Transport> MpiTransport::split(const std::vector<int>& members) {
  MPI_Group everyone = MPI_GROUP_NULL, chosen = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(group_.collectives, &everyone), "list a group");
  check_mpi(MPI_Group_incl(everyone, static_cast<int>(members.size()), members.data(), &chosen), "choose members");
  MpiGroup part;
  check_mpi(MPI_Comm_create_group(group_.collectives, chosen, 0, &part.collectives), "make a group");
  check_mpi(MPI_Comm_create_group(group_.collectives, chosen, 1, &part.messages), "make a group");
  MPI_Group_free(&everyone);
  MPI_Group_free(&chosen);
  return std::make_unique<MpiTransport>(part, liveness_);
}

}  // namespace

void check_mpi(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw_environment_error("MPI cannot {}: {}", what, text.data());
}

std::unique_ptr<Transport> make_mpi_world(Liveness& liveness) {
  MpiGroup group;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &group.collectives), "copy its world");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &group.messages), "copy its world");
  return std::make_unique<MpiTransport>(group, liveness);
}

}  // namespace teratron

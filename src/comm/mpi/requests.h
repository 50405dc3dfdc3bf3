// Messages under way in one MPI communicator. Waiting looks for lost ranks, so it ends where MPI's own would not.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/mpi/liveness.h"

namespace teratron {

// EnvironmentError with MPI's own words where `code` is not MPI_SUCCESS.
void check_mpi(int code, std::string_view what);

// A broadcast or message of more bytes than MPI's int counts goes in pieces of this many.
constexpr std::int64_t kLongestMessage = std::int64_t{1} << 30;

class Requests {
 public:
  // Requests still under way at the end are abandoned: that only happens where ranks are lost and the process will end.
  Requests(MPI_Comm communicator, const Liveness& liveness) : communicator_(communicator), liveness_(&liveness) {}

  void send(const void* from, std::int64_t bytes, int to, int tag);
  void receive(void* to, std::int64_t bytes, int from, int tag);
  void broadcast(void* data, std::int64_t bytes, int root);
  void wait();  // until all are done; LostRank

 private:
  void blame(int code) const;

  MPI_Comm communicator_;
  const Liveness* liveness_;
  std::vector<MPI_Request> requests_;
};

}  // namespace teratron

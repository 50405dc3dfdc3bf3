// Messages of MPI. Only its moving of bytes is used: nothing here blocks inside MPI, so a rank that waits notices
// failures (comm/control/control_plane.h). Used by the rank's own thread alone.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "comm/communicator.h"
#include "comm/control/control_plane.h"

namespace teratron {

// EnvironmentError with MPI's own words unless `code` is MPI_SUCCESS.
void check_mpi(int code, std::string_view what);

// Messages under way in one MPI communicator. The memory of a message belongs to it until wait() returns. A message may
// arrive before its receive is started. Destroying messages under way abandons them; that happens only when ranks are
// lost and the process ends.
class MpiRequests final : public Pending::Work {
 public:
  MpiRequests(MPI_Comm communicator, const ControlPlane& control) : communicator_(communicator), control_(control) {}

  void send(const void* from, std::int64_t bytes, int to, int tag);
  void receive(void* to, std::int64_t bytes, int from, int tag);
  void broadcast(void* data, std::int64_t bytes, int root);
  void wait() override;  // until all are done; the failure of another rank

 private:
  MPI_Request* next();

  const MPI_Comm communicator_;
  const ControlPlane& control_;
  std::vector<MPI_Request> requests_;
};

}  // namespace teratron

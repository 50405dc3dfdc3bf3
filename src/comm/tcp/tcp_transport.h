// Connections between all processes of a job as what carries the bytes of its groups. The rank's own thread moves them,
// while it waits for anything.
#pragma once

#include <memory>
#include <vector>

#include "comm/process/liveness.h"
#include "comm/process/transport.h"
#include "comm/tcp/socket.h"

namespace teratron {

// All processes of the job. `sockets`: connections with the others, by rank; the caller's own is empty. `liveness`
// outlives it.
std::unique_ptr<Transport> make_tcp_world(std::vector<Socket> sockets, int rank, Liveness& liveness);

}  // namespace teratron

// Groups of ranks that are processes without MPI. Their host exchanges go through the control plane. Their tensors lie
// in device memory and move through its channels (NCCL); nothing here moves tensors.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/control/control_plane.h"

namespace teratron {

// All processes of the job. `control` outlives it.
std::unique_ptr<Communicator> make_control_world(ControlPlane& control, int rank, int size);

}  // namespace teratron

// What a rank of this machine can do, with all ranks at work: the numbers of a cluster file that belong to a device.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "ops/backend.h"

namespace teratron {

struct MachineSpeed {
  std::string processor;
  double flops = 0;             // of matrix products in the back end's precision, operations a second
  double memory_bandwidth = 0;  // bytes a second that copies read and write together, at the best of several sizes
  double memory = 0;            // bytes that a rank may take; 0: the system does not tell
};

// Every rank of `world` calls it; all return the same.
MachineSpeed measure_machine(Backend& backend, Communicator& world);

}  // namespace teratron

// Groups of ranks that are threads of one process and read each other's memory.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/thread/thread_group.h"

namespace teratron {

// The caller's place in a group. Used by the thread that is that rank alone.
std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<ThreadGroup> group, int rank);

}  // namespace teratron

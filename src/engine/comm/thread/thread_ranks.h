// Ranks as threads of this process.
#pragma once

#include <functional>
#include <string>

#include "comm/communicator.h"

namespace teratron {

// Runs body once a rank, each on a thread of its own that may use an even share of the caller's thread_count(). The
// first failure is rethrown when all have ended.
void run_thread_ranks(int ranks, const std::string& host, const std::function<void(Communicator& world)>& body);

}  // namespace teratron

// This process as one rank of a job of processes, whatever started them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/process/liveness.h"
#include "comm/process/transport.h"

namespace teratron {

class ProcessJob {
 public:
  virtual ~ProcessJob() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Everyone's contact, by rank. Called first and once, when nobody is watched yet. EnvironmentError: somebody does not
  // come.
  virtual std::vector<std::string> meet(const std::string& contact) = 0;
  // The group of all; called after meet(). `liveness` is started and outlives it.
  virtual std::unique_ptr<Transport> connect(Liveness& liveness) = 0;
};

// launch.h: run_ranks. `host`: this one's name.
void run_process_rank(ProcessJob& job, const std::string& host, const std::function<void(Communicator& world)>& body);

}  // namespace teratron

// The processes of an address launch as a job, connected each with each by TCP.
#pragma once

#include <chrono>
#include <optional>

#include "comm/process/process_job.h"
#include "comm/tcp/address_launch.h"
#include "comm/tcp/rendezvous.h"

namespace teratron {

class TcpJob final : public ProcessJob {
 public:
  // How long processes may lie apart when they meet.
  static constexpr std::chrono::milliseconds kLongestStart = std::chrono::minutes(5);

  TcpJob(AddressLaunch launch, std::string host, std::chrono::milliseconds longest_start = kLongestStart);
  int rank() const override { return launch_.rank; }
  int size() const override { return launch_.world_size; }
  std::vector<std::string> meet(const std::string& contact) override;  // rendezvous.h has its errors
  std::unique_ptr<Transport> connect(Liveness& liveness) override;

 private:
  Socket call(std::size_t other) const;
  void open_to(Door::Guest guest);

  const AddressLaunch launch_;
  const std::string host_;
  const std::chrono::milliseconds longest_start_;
  std::optional<Door> door_;  // for ranks that come after this one; the first knows them from the start
  Roster roster_;
};

}  // namespace teratron

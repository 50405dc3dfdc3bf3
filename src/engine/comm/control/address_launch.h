// Processes that were started with the address of the first one in their environment, as torchrun, Kubernetes'
// PyTorchJob and shell loops do: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace teratron {

struct MeetingPoint;

struct AddressLaunch {
  int rank = 0, world_size = 1;
  std::string address;               // MASTER_ADDR
  std::uint16_t port = 0;            // MASTER_PORT
  std::vector<std::uint16_t> ports;  // where the first rank may listen; it takes the first that is free
  std::string job;           // alike for the ranks of a job, and as a rule other than another's at the same address
  std::string launcher;      // for people: "torchrun", or "the job at ADDRESS:PORT"
  std::string secret;        // of TERATRON_SECRET or the file that TERATRON_SECRET_FILE names; empty: neither is set
  bool is_one_host = false;  // the launcher says that it runs all of them on this host
};

// The text of a variable, or null.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// Meeting point of the processes. Without a secret this is the loopback address, which other hosts do not reach.
// `bind`: the address that the first one listens at; empty: all of its host's where there is a secret. UserError: no
// secret for what other hosts may reach, with how to draw one.
MeetingPoint meeting_point_of(const AddressLaunch& launch, const std::string& bind);

// Launch by address; none where the variables do not say that several processes were started together: RANK and
// WORLD_SIZE, or one of them and MASTER_ADDR, are a launch, and a world of one is none. UserError that lists what is
// missing or wrong; a secret that is short enough to guess, or cannot be read.
std::optional<AddressLaunch> find_address_launch(const EnvironmentLookup& environment);

}  // namespace teratron

// How processes that know the address of the first one become a job: each says hello to the first, which tells everyone
// who all of them are when the last one has come, or what is wrong as soon as something is.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "comm/tcp/address_launch.h"
#include "comm/tcp/frame.h"

namespace teratron {

// A process of the job, as others reach it.
struct Member {
  std::string host;
  std::uint16_t port = 0;  // of its door
  std::string addresses;   // dotted, separated by spaces, the loopback address first
  std::string contact;     // what ProcessJob::meet() was given
};

struct Roster {
  std::string secret;           // that only members know
  std::vector<Member> members;  // by rank
  std::vector<Socket>
      sockets;  // by rank: connections with the first rank; its own is empty, as are others among the rest
};

// Every process calls its one of these two, with itself. UserError: two have the same rank, or other ideas of how many
// there are; EnvironmentError: somebody does not come within `longest`, ends before everyone has come, or tells of its
// failure. What one is told, all are told that have come, and those that come in the next seconds.
Roster gather_members(const AddressLaunch& launch, const Member& own, std::chrono::milliseconds longest);
Roster join_members(const AddressLaunch& launch, const Member& own, std::chrono::milliseconds longest);

// This process ends before it has met the others: they are told, and not kept waiting.
void report_early_end(const AddressLaunch& launch, const std::string& host, int exit_code);

}  // namespace teratron

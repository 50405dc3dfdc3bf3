// Membership of processes in a job: the hello that a process sends to the first rank, the first rank's checks, and the
// notice that ends the job with a reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/control/frame.h"

namespace teratron {

// Addresses at which the first rank listens, and the secret that admits members.
struct MeetingPoint {
  std::vector<std::string> hosts;    // names or addresses of its host, tried in turn
  std::vector<std::uint16_t> ports;  // it listens at the first one that is free
  std::string secret;                // hellos with another one are answered with "another job"
  bool is_drawn = true;              // the secret is random and proves membership; else a stranger may have guessed it
  std::string bind;                  // the address that the first rank listens at; empty: all of its host's
  std::string name;                  // for people: "10.0.0.1:29500 (MASTER_ADDR and MASTER_PORT)"
};

// Rank of this process in its job.
struct Membership {
  int rank = 0, size = 1;
  std::string host;
  MeetingPoint point;
};

// Why the job ends. The first one counts; every member throws it.
struct FailureNotice {
  enum class Kind { kUser, kEnvironment, kLostRank };
  Kind kind = Kind::kLostRank;
  std::string reason;  // the whole message, except of a lost rank
  int rank = 0;        // the rest: of a lost rank
  std::string host, activity;

  [[noreturn]] void raise() const;  // UserError, EnvironmentError or LostRank
  std::string message() const;
  Frame frame() const;
  static std::optional<FailureNotice> parse(const Frame& frame);
};

// The first frame that a member sends.
struct Hello {
  int rank = -1, size = 0;
  std::string host, protocol;

  static Frame frame(const Membership& own);
  // None if the frame is no hello, or one with another secret.
  static std::optional<Hello> parse(const Frame& frame, const MeetingPoint& point);
};

// Why the first rank cannot admit a member; none if it can. `hosts`: of the ranks that have come, by rank; empty for
// the others.
std::optional<FailureNotice> fault_of(const Hello& hello, const std::vector<std::string>& hosts);

// "rank 2" or "ranks 2, 3", at most 16 of them. `missing`: not empty.
std::string text_of_ranks(const std::vector<int>& ranks);

// Number that another process wrote as a decimal of up to 8 digits; -1 for anything else.
int number_from(const std::string& text);

// Count of up to 64 bits that another process wrote as a decimal; 0 for anything else.
std::uint64_t count_from(const std::string& text);

}  // namespace teratron

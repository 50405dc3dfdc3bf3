// Event that befalls a command while it runs.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/philox.h"
#include "torture/calls.h"
#include "torture/disk.h"

namespace teratron::torture {

struct Disturbance {
  Action action = Action::kNothing;
  Call call = Call::kOpen;
  std::uint64_t number = 0;  // of the calls of this kind
  int error = 0;
  std::optional<std::chrono::microseconds> killed_after;
  std::optional<Names> power_failure;  // after the end of the program

  bool kills() const {
    return killed_after || action == Action::kKillBefore || action == Action::kKillHalf || action == Action::kKillAfter;
  }
  bool harms_nothing() const { return action == Action::kShort || action == Action::kInterrupt; }
};

// For messages.
std::string text_of(const Disturbance& disturbance);

// How often a command makes each kind of call, and how long it takes.
struct Extent {
  std::array<std::uint64_t, kCallNames.size()> calls{};
  std::chrono::microseconds time{};
};

// A disturbance of a command, at any of its calls or at any time.
Disturbance draw(const Extent& extent, RandomSequence& random);

}  // namespace teratron::torture

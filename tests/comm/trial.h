// One collective with values whose result is known without it: every rank can work out what every other rank brings.
// Used by threads and by processes alike, so a wrong result is an exception, not a gtest expectation.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"
#include "ops/backend.h"

namespace teratron::testing {

struct Trial {
  Collective collective = Collective::kAllReduce;  // kSend: everyone sends to the member `root + 1` places on
  DType dtype = DType::kF32;
  std::int64_t elements = 0;  // of the smaller view
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  bool in_place = false;
  bool fractions =
      false;  // random values, whose sum must have the bits of a sum in the members' order (f32, bf16, f16)
  std::uint32_t salt = 0;  // other values
};

// Between construction and wait_and_check() the collective is under way. `members`: world ranks of the group.
class RunningTrial {
 public:
  RunningTrial(Communicator& group, const std::vector<int>& members, Backend& memory, const Trial& trial);
  void wait_and_check();  // std::runtime_error: what was expected and what came

 private:
  std::vector<double> brought(int member, std::int64_t count) const;
  std::vector<double> expected() const;
  void start();

  Communicator& group_;
  const std::vector<int>& members_;
  Backend& memory_;
  const Trial trial_;
  Tensor in_, out_;
  Pending first_, second_;
};

void run_trial(Communicator& group, const std::vector<int>& members, Backend& memory, const Trial& trial);

// Every collective, in place and not, over the dtypes and counts given.
void run_all_trials(Communicator& group, const std::vector<int>& members, Backend& memory,
                    const std::vector<DType>& dtypes, const std::vector<std::int64_t>& counts);

// A program of `steps` random collectives over random groups, several of them under way at once; the same on every
// rank for one seed. Backend memory is attached to every group.
void run_random_program(Communicator& world, Backend& memory, std::uint32_t seed, int steps);

// Messages as a pipeline's: `steps` times everyone sends to the next rank or to the one before, several under way.
void run_random_messages(Communicator& world, Backend& memory, std::uint32_t seed, int steps);

}  // namespace teratron::testing

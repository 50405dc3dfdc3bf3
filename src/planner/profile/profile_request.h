// What is measured for a profile: a model and everything of a layout that a pass's time depends on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "settings/step_settings.h"

namespace teratron {

struct ProfileRequest {
  ModelConfig model;                       // vocabulary and positions filled in
  std::int64_t sequences = 1, tokens = 0;  // of a micro-batch
  std::int64_t logits_chunk = 256;         // 0: as memory allows
  std::vector<std::int64_t> cell_layers;   // of each stage; empty: as many in each
  Recompute recompute = Recompute::kNone;
  bool sequence_parallel = false, shard_optimizer = false;
  std::string ranks = "threads";  // LaunchEnvironment::ranks_are()
  int repeats = 3;                // of every slicing
};

// Of training steps with these settings, which have no faults. `ranks`: LaunchEnvironment::ranks_are().
ProfileRequest profile_request(const StepSettings& settings, std::int64_t vocab_size, const std::string& ranks);

}  // namespace teratron

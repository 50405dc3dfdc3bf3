// Checks that a schedule can be executed, or lists its faults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/schedule.h"

namespace teratron::pipeline {

// Faults, a line each that names the stage, the action and the reason. None means that
// - every stage does for every micro-batch, slice and chunk one forward and one backward (whole, or in its two parts),
//   and with vocabulary parallelism for every slice one pass of the embedding, its backward and the head;
// - what an action needs from its own stage comes before it;
// - what one stage sends to the next (or, backward, to the one before) is received in the order in which it was sent,
//   so that one channel for each direction of each pair of stages does, without tags;
// - the stages come to the end of their lists with receives that wait and sends that do not, and joint passes that
//   begin on all stages together;
// - no stage ever holds more than `most_slices` live activations of a slice of a cell, where that is given.
std::vector<std::string> schedule_faults(const Schedule& schedule,
                                         std::optional<std::int64_t> most_slices = std::nullopt);

// InternalError with the faults where there are any.
void check_schedule(const Schedule& schedule, std::optional<std::int64_t> most_slices = std::nullopt);

}  // namespace teratron::pipeline

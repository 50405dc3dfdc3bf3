// The pipeline of --schedule auto and --pipeline-layout auto, by measured times of this machine's ranks and the memory
// that they have.
#pragma once

#include <optional>

#include "profile/pipeline_profile.h"
#include "runtime/ranks.h"
#include "train/config/start_reading.h"

namespace teratron {

// Whether the start asks for a choice, and there is one: among several stages of a model that continues text.
bool chooses_pipeline(const TrainStart& start);

// The configuration with the chosen pipeline in place of what was not given; a checkpoint records it as if it had been
// given. Every rank calls it and gets the same; the first one reports it. EnvironmentError: nothing fits.
TrainConfig with_chosen_pipeline(const TrainStart& start, std::int64_t vocab_size, const slicing::Profile& profile,
                                 const Rank& rank, Backend& backend);

}  // namespace teratron

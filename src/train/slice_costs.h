// What slices of tokens cost in the stages of this run: for --token-slices auto, for --defer-weight-gradients, and for
// what is told of the pipeline.
#pragma once

#include <optional>
#include <string>

#include "profile/pipeline_profile.h"
#include "train/config.h"

namespace teratron {

// What is measured for runs of this configuration. `ranks`: LaunchEnvironment::ranks_are().
ProfileRequest profile_request(const TrainConfig& config, std::int64_t vocab_size, const std::string& ranks);

// From the file of --profile or the cache, measured where there is none; nothing where no file is given and none is
// needed. Every rank of the mesh calls it, so that all plan alike. UserError: a file of --profile that is no profile or
// was measured for something else.
std::optional<slicing::Profile> slice_costs(const TrainConfig& config, std::int64_t vocab_size,
                                            const std::string& ranks, const std::shared_ptr<Mesh>& mesh,
                                            Backend& backend, const ProfileProgress& progress);

}  // namespace teratron

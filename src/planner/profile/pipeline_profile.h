// The performance model of a pipeline, measured (TeraPipe, arXiv 2102.07988, section 3.3): times of slices of any
// length after any context in every stage, from training steps of the user's own model with all ranks of the layout at
// work. slicing/cost/cost_model.h fits them; slicing/cost/profile.h is the file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "profile/step_times.h"
#include "slicing/cost/profile.h"

namespace teratron {

// Called on every rank before the first of `steps` steps of measuring, with 0, and after each.
using ProfileProgress = std::function<void(int done, int steps)>;

slicing::ProfileKey profile_key(const ProfileRequest& request, const Mesh& mesh, const Backend& backend);

// Measures all slicings of profile/slicings.h in turns, request.repeats times after a warm-up, or less often: a round
// after the first begins only within request.most_seconds of steps. The least time of a pass makes the costs, the
// median time of iterations the pace. Every rank of the mesh calls it; all return the same profile. UserError for
// sequences too short to slice.
slicing::Profile measure_profile(const ProfileRequest& request, const std::shared_ptr<Mesh>& mesh, Backend& backend,
                                 const ProfileProgress& progress = {});

// The file of the profile with this key: $XDG_CACHE_HOME, or ~/.cache, /teratron/profiles/<hash of the key>.json.
// UserError where neither variable is set.
std::filesystem::path cached_profile(const slicing::ProfileKey& key);

// The profile in `file`, empty: in its place in the cache; measured and written there if there is none. A file in the
// cache that is of no use is measured again, and a cache that cannot be written is a warning; a file that the user
// names must fit (UserError). Every rank of the mesh calls it; the first one alone reads and writes.
slicing::Profile profile_for(const ProfileRequest& request, const std::shared_ptr<Mesh>& mesh, Backend& backend,
                             const std::filesystem::path& file, const ProfileProgress& progress = {});

// Writes it as profile_for() reads it, with the folders above it. EnvironmentError.
void write_profile(const slicing::Profile& profile, const std::filesystem::path& file);

}  // namespace teratron

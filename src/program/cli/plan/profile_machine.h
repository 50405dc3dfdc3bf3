// teratron profile --cluster: the machine at hand as a cluster, for teratron plan and simulate.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "settings/step_settings.h"

namespace teratron {

// Measures a device for each rank of the layout of `settings`, with all of them at work. Writes the cluster to the file
// `cluster`; for "this-machine" to where find_cluster() looks for it (UserError: the user has no cache folder).
// UserError: `json` is that file.
void profile_machine(const StepSettings& settings, const std::string& cluster, std::int64_t rounds,
                     const std::filesystem::path& json);

}  // namespace teratron

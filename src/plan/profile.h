// A measured cost model on disk, with what it was measured for, so that a stale one is never used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "plan/cost_model.h"

namespace teratron::plan {

// Everything that a slice's time hangs on besides its tokens.
struct ProfileKey {
  std::string processor;     // its model, as the system names it
  std::string dtype;         // that the back end computes in: "f32", "bf16", ...
  std::string recompute;     // "none", "selective", "full"
  std::int64_t threads = 1;  // a rank
  std::int64_t hidden_size = 0, ffn_hidden_size = 0, attention_heads = 0;
  std::int64_t layers = 0;  // of the stage that was measured
  std::int64_t tensor_parallel = 1;
  std::int64_t sequences = 1;  // at a time
  bool operator==(const ProfileKey&) const = default;
};

struct Profile {
  ProfileKey key;
  CostModel forward, backward;
  RelativeError forward_error, backward_error;  // on measurements left out of the fit
  bool operator==(const Profile&) const = default;
};

// Reads back exactly.
std::string to_json(const Profile& profile);

// UserError that names `path` where the text is not such a profile, or one that cannot be true (lengths that do not
// grow, times that are not positive, ...).
Profile profile_from_json(std::string_view text, const std::filesystem::path& path);

// UserError that lists what differs where the profile at `path` was measured for something else than `wanted`.
void require_key(const Profile& profile, const ProfileKey& wanted, const std::filesystem::path& path);

}  // namespace teratron::plan

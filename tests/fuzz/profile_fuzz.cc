// A measured profile: what is read is written and read again to the same profile.
#include "fuzz.h"
#include "slicing/cost/profile.h"

void teratron::fuzz::parse(std::string_view input) {
  const slicing::Profile profile = slicing::profile_from_json(input, "a.json");
  require(slicing::profile_from_json(slicing::to_json(profile), "b.json") == profile, "a profile reads back exactly");
}

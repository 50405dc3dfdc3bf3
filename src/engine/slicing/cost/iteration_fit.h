// Fit of a profile's measured iterations, beyond its passes: the pace, the time beside a pass, and how well both fit.
#pragma once

#include "slicing/cost/profile.h"

namespace teratron::slicing {

// The pace that makes the profile's costs fit its iterations, without those held out.
Pace pace_of(const Profile& profile);

struct IterationFit {
  double beside_pass = 0;  // milliseconds of a stage beside each of its passes: handing slices over, waking up
  Pace pace;               // with that time counted
  double error = 0;        // mean over all iterations of |predicted over measured - 1|
};

// The least error by far where short passes are many and cores are busy; else nearly pace_of(). The profile's own pace
// where it has no iterations.
IterationFit fit_iterations(const Profile& profile);

// Costs whose passes all take so much longer.
void add_to_passes(pipeline::Costs& costs, double milliseconds);

}  // namespace teratron::slicing

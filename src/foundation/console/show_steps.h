// A long task of known steps, as a person sees it.
#pragma once

#include <functional>
#include <string>

namespace teratron {

// Tells on standard error how far a long task is and how long the rest will take, as it is called: before the first
// step, with 0 done, and after each. One live line on a terminal, elsewhere a line now and then. `seconds_of_step`:
// what one is expected to take before any is done; 0: not known.
std::function<void(int done, int steps)> show_steps(std::string doing, double seconds_of_step = 0);

}  // namespace teratron

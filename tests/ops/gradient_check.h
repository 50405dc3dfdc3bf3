// Backward passes against central differences of the forward pass, in double on the reference back end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ops/trials/trial.h"

namespace teratron::testing {

// The loss is the sum of every output element times a fixed random weight. `forward` reads the inputs and writes the
// outputs and what is saved for the backward pass; `backward` may read all of them and "d" + output (the weights), and
// writes "d" + input for every input.
struct GradientCase {
  struct Named {
    std::string name;
    Shape shape;
  };
  std::vector<Named> inputs, outputs, saved;
  std::function<void(Backend&, const Views&)> forward, backward;
};

// Checks the derivative by every element of every input, at a random point.
void expect_gradients_match(const GradientCase& tested, std::uint64_t seed);

}  // namespace teratron::testing

// Losses of samples with the weights as they are, without dropout. All ranks call these and get the same.
#pragma once

#include <vector>

#include "executor/executor.h"
#include "train/sample_reader.h"

namespace teratron {

// Means over these samples, by kind.
LossSums mean_losses(Executor& executor, SampleReader& reader, const Samples& samples, SampleRange positions);

// Loss of one sample, or of the samples that share a label.
struct SampleLoss {
  SampleRange positions;  // in the run
  double loss = 0;        // mean of its targets
};
std::vector<SampleLoss> losses_of_each(Executor& executor, SampleReader& reader, const Samples& samples,
                                       SampleRange positions);

}  // namespace teratron

// An iteration of a setting of TeraPipe's (data/papers/terapipe.toml) on a preset of a cluster, by the paper's program
// and by Teratron.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/config/config.h"

namespace teratron::plan::terapipe {

class Iteration {
 public:
  virtual ~Iteration() = default;
  // Seconds of the whole iteration with every sequence cut into slices of these lengths (tokens); of one length, as
  // GPipe.
  virtual double seconds(const std::vector<std::int64_t>& lengths) const = 0;
  // Algorithm 1 on the program's costs.
  virtual std::vector<std::int64_t> best_slices() const = 0;
};

// Layers alone. A stage sends what it has made before it goes on, once for its tensor-parallel ranks; gradients are
// summed after the last pass. (With messages beside the passes, the best fit to all cells had the slices of settings 8
// to 10 13 to 20 % too slow.)
std::unique_ptr<Iteration> papers_iteration(const TrainConfig& setting, const std::string& cluster);

// The whole model, as `teratron train` runs it: embedding, head and the sum of the tied embedding too; messages of 1/t
// a rank beside the passes, gathered where they arrive; gradients summed beside the backward; on run_by_teratron().
std::unique_ptr<Iteration> teratrons_iteration(const TrainConfig& setting, const std::string& cluster);

}  // namespace teratron::plan::terapipe

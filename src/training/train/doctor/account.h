// Account of a fault that a replay repeats: what was unlike the updates before, in words.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "train/losses.h"
#include "train/updates.h"

namespace teratron {

class Account {
 public:
  // The rate of the update before the first is the state's.
  void begin_at(const TrainingState& state);
  void add(const Update& update, std::vector<LayerNumerics> layers);

  const std::vector<LayerNumerics>& layers() const { return layers_; }  // of the last update

  // Sentences on update `bad`: the learning rate, the gradient norm, the layers, the samples.
  std::string text(std::int64_t bad, const std::vector<SampleLoss>& losses, const Samples& samples) const;

 private:
  // An update among those that rates and norms are compared with.
  struct Past {
    std::int64_t iteration = 0;
    double learning_rate = 0;
    std::optional<double> gradient_norm;
  };
  static constexpr std::size_t kMostPast = 32;

  std::string of_rate() const;
  std::string of_norm(std::int64_t bad) const;
  std::string of_layers(std::int64_t bad) const;

  std::deque<Past> past_;
  std::vector<LayerNumerics> layers_, layers_before_;
};

}  // namespace teratron

// The doctor of a run (--trace-numerics): keeps the numbers of every update, compares a replay with them, and says in
// words what it found. The Trainer goes back and replays (trainer_doctor.cc).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "data/samples.h"
#include "train/doctor/layer_numerics.h"
#include "train/doctor/step_record.h"

namespace teratron {

// Loss of one sample of an update, or of the samples that share a label, with the weights before it and no dropout.
struct SampleLoss {
  SampleRange positions;  // in the run
  double loss = 0;        // mean of its targets
};

class Doctor {
 public:
  // `executor` keeps tallies.
  explicit Doctor(Executor& executor) : executor_(executor) {}

  // A step of an update: its gradients are there, and nothing is applied. All ranks call it.
  struct Step {
    std::int64_t iteration = 0;
    double loss = 0, loss_scale = 1, learning_rate = 0;
    bool has_samples = true;  // of this rank's copy of the model
  };
  void take(const Step& step);
  void take_norm(double gradient_norm, double loss_scale);

  // Layers of the last update; replays leave them.
  const std::vector<LayerNumerics>& layers() const { return layers_; }

  // Updates up to this one are never replayed.
  void forget_until(std::int64_t iteration) { record_.forget_until(iteration); }
  // Rate of the update before the first.
  void goes_on_from(std::int64_t iteration, double learning_rate);

  // Until end_replay(), what is taken is compared and not kept.
  void begin_replay();
  void end_replay() { replays_ = false; }
  bool replays() const { return replays_; }
  // Compares the update taken last, once its norm is taken if it has one. All ranks call it.
  std::optional<Parting> parting();

  // Sentences on a fault that a replay repeats in update `bad`: the learning rate, the gradient norm, the layers, the
  // samples. Same on all ranks.
  std::string account(std::int64_t bad, const std::vector<SampleLoss>& losses, const Samples& samples) const;

 private:
  // An update among those that rates and norms are compared with.
  struct Past {
    std::int64_t iteration = 0;
    double learning_rate = 0;
    std::optional<double> gradient_norm;
  };
  static constexpr std::size_t kMostPast = 32;

  std::string account_of_rate() const;
  std::string account_of_norm() const;
  std::string account_of_layers(std::int64_t bad) const;

  Executor& executor_;
  StepRecord record_;
  StepNumbers replayed_;
  bool replays_ = false;
  std::deque<Past> past_;
  std::vector<LayerNumerics> layers_, layers_before_;
};

// Where the loss of a batch lies: in few samples, which are named with their documents, or in all alike.
std::string account_of_samples(std::vector<SampleLoss> losses, const Samples& samples);

}  // namespace teratron

// Runs of twelve updates that a signal or a clock may end, on any layout of ranks.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "train/training_fixture.h"

namespace teratron::testing {

class EarlyEndFixture : public TrainingFixture {
 protected:
  struct Recorder final : TrainingObserver {
    void iteration(const IterationReport& report) override { losses.push_back(report.loss); }
    void validation(std::int64_t iteration, const LossSums& of_kinds) override {
      validations.push_back(of_kinds.total());
      validated.push_back(iteration);
    }
    void saved(std::int64_t iteration, const std::filesystem::path&) override { saves.push_back(iteration); }
    void notice(const std::string& text) override { notices.push_back(text); }
    std::vector<double> losses, validations;
    std::vector<std::int64_t> validated, saves;
    std::vector<std::string> notices;
  };

  struct Outcome {
    Recorder first;                       // what the first rank saw
    std::vector<TrainingResult> results;  // by rank
  };

  using ControlOf = std::function<RunControl(int rank)>;

  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_attention_heads = 4;
    config_.model.config.num_layers = 4;
    config_.train_iters = 12;
    config_.optimizer.learning_rate.decay = 12;
  }

  Outcome run(const TrainConfig& config, const ControlOf& control_of) {
    Outcome outcome;
    outcome.results.resize(static_cast<std::size_t>(config.layout.mesh().ranks()));
    on_ranks(config, [&](Trainer& trainer, Communicator& world) {
      trainer.start();
      Recorder recorder;
      outcome.results[static_cast<std::size_t>(world.rank())] = trainer.run(recorder, control_of(world.rank()));
      if (world.rank() == 0) outcome.first = recorder;
    });
    return outcome;
  }
  static RunControl undisturbed(int) { return {}; }
  // `rank` gets the signal during an update, counted from 1; the others never do.
  static ControlOf signal_in(int update, int rank, int signal) {
    return [=](int own) {
      if (own != rank) return RunControl{};
      return RunControl{.signal = [=, calls = 0]() mutable { return ++calls < update ? 0 : signal; }};
    };
  }
  // The first rank's clock: a minute with every look at it. The others' stands still.
  static RunControl clock_of(int rank) {
    return {.seconds = [rank, now = 0.0]() mutable { return rank == 0 ? now += 60 : 0.0; }, .began = 0};
  }
};

}  // namespace teratron::testing

// Training runs on a small corpus, on any layout of ranks, and what comes of them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/temporary_folder.h"
#include "comm/launch.h"
#include "data/indexed/indexed_dataset_writer.h"
#include "model/llama_shape.h"
#include "model/whole_weights.h"
#include "train/trainer.h"

namespace teratron::testing {

struct TrainingRun {
  std::vector<IterationReport> reports;
  std::vector<double> losses;  // of the reports
  std::vector<double> validations;
  std::vector<double> parameters;  // of the whole model, one after the other
  std::vector<double> plans;       // bytes, by rank
  TrainingResult result;

  // This run and the one that went on from it, as one.
  TrainingRun then(const TrainingRun& rest) const {
    const auto append = [](auto all, const auto& more) {
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    return {.reports = append(reports, rest.reports),
            .losses = append(losses, rest.losses),
            .validations = append(validations, rest.validations),
            .parameters = rest.parameters,
            .plans = rest.plans,
            .result = rest.result};
  }
};

inline void expect_same_bits(const TrainingRun& actual, const TrainingRun& expected, const std::string& what = "") {
  EXPECT_EQ(actual.losses, expected.losses) << what;
  EXPECT_EQ(actual.parameters, expected.parameters) << what;
}

class TrainingFixture : public ::testing::Test {
 protected:
  static constexpr std::int64_t kVocab = 50;

  void SetUp() override {
    // Tokens with something to learn: each follows from the one before, mostly.
    IndexedDatasetWriter writer(folder_ / "corpus", kVocab);
    std::mt19937 random(1);
    for (int document = 0; document < 40; ++document) {
      std::vector<std::int32_t> tokens(20 + random() % 60);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        const auto previous = i == 0 ? 0 : static_cast<std::uint32_t>(tokens[i - 1]);
        tokens[i] = static_cast<std::int32_t>((random() % 5 == 0 ? random() : previous * 7 + 3) % kVocab);
      }
      writer.add_document(tokens);
    }
    writer.commit();
    config_.model.config.num_layers = 2;
    config_.model.config.hidden_size = 24;
    config_.model.config.num_attention_heads = 3;
    config_.model.seq_length = 16;
    config_.batch.micro_batch_size = 2;
    config_.batch.global_batch_size = 4;
    config_.train_iters = 8;
    config_.optimizer.learning_rate.peak = 1e-2;
    config_.data_path = {(folder_ / "corpus").string()};
    config_.split.weights = "9,1";
    config_.logits_chunk = 10;
    config_.output.eval_iters = 2;
  }

  // On as many thread ranks as the configuration asks for.
  void on_ranks(const TrainConfig& config, const std::function<void(Trainer&, Communicator& world)>& body) {
    const TrainingData data = open_training_data(config);
    run_ranks({}, config.layout.mesh().ranks(), [&](Communicator& world) {
      const auto backend = make_cpu_backend(
          {.compute_dtype = config.backend.compute_dtype(), .guard_memory = config.backend.guard_memory});
      const auto mesh = std::make_shared<Mesh>(make_mesh(world, config.layout.mesh()));
      Trainer trainer(config, *backend, make_training_task(config, data, kVocab, mesh->coordinates()), mesh,
                      profile_ ? &*profile_ : nullptr);
      body(trainer, world);
    });
  }

  // What rank 0 saw.
  TrainingRun train(const TrainConfig& config) {
    TrainingRun run;
    WholeWeights parameters;
    on_ranks(config, [&](Trainer& trainer, Communicator& world) {
      trainer.start();
      Observer observer;
      const TrainingResult result = trainer.run(observer);
      std::vector<double> plans(static_cast<std::size_t>(world.size()));
      plans[static_cast<std::size_t>(world.rank())] = static_cast<double>(trainer.executor().memory().bytes());
      world.all_reduce_host(plans);
      parameters.add(trainer.executor());
      if (world.rank() != 0) return;
      run = {.reports = observer.reports, .validations = observer.validations, .plans = plans, .result = result};
      for (const IterationReport& report : run.reports) run.losses.push_back(report.loss);
    });
    run.parameters = parameters.values();
    return run;
  }

  // The first updates of a run that is stopped there, saved in a new folder "save".
  TrainingRun begin(TrainConfig config, std::int64_t updates) {
    config.optimizer.learning_rate.decay = config.train_iters;
    config.train_iters = updates;
    config.output.save = folder_ / "save";
    std::filesystem::remove_all(config.output.save);
    return train(config);
  }
  // The rest of the run in "save".
  TrainingRun resume(TrainConfig config) {
    config.output.load = folder_ / "save";
    return train(config);
  }
  TrainingRun train_in_two(const TrainConfig& config, std::int64_t updates) {
    return begin(config, updates).then(resume(config));
  }

  // Two tensor-parallel ranks in each of two copies.
  static TrainConfig split(TrainConfig config) {
    config.layout.tensor_parallel = config.layout.data_parallel = 2;
    config.layout.sequence_parallel = config.layout.distributed_optimizer = true;
    config.batch.micro_batch_size = 1;
    return config;
  }
  // Two stages in each of two copies.
  static TrainConfig piped(TrainConfig config) {
    config.layout.pipeline_parallel = config.layout.data_parallel = 2;
    config.layout.distributed_optimizer = true;
    config.batch.micro_batch_size = 1;
    return config;
  }

  const TemporaryFolder folder_{TemporaryFolder::kDisk};
  TrainConfig config_;
  std::optional<slicing::Profile> profile_;  // measured costs of slices

 private:
  class Observer final : public TrainingObserver {
   public:
    void iteration(const IterationReport& report) override { reports.push_back(report); }
    void validation(std::int64_t, const LossSums& losses) override { validations.push_back(losses.total()); }
    std::vector<IterationReport> reports;
    std::vector<double> validations;
  };
};

// The promise about layouts in fp32: losses within 1e-5 relative, weights within 1e-5 of the largest (a weight near
// zero has no digits of its own).
inline void expect_same_training(const TrainingRun& actual, const TrainingRun& expected, const std::string& what) {
  ASSERT_EQ(actual.losses.size(), expected.losses.size()) << what;
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    EXPECT_NEAR(actual.losses[i], expected.losses[i], 1e-5 * expected.losses[i]) << what << ", update " << i + 1;
  }
  ASSERT_EQ(actual.parameters.size(), expected.parameters.size()) << what;
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < expected.parameters.size(); ++i) {
    largest = std::max<double>(largest, std::abs(expected.parameters[i]));
    worst = std::max<double>(worst, std::abs(actual.parameters[i] - expected.parameters[i]));
  }
  EXPECT_LE(worst, 1e-5 * largest) << what;
}

}  // namespace teratron::testing

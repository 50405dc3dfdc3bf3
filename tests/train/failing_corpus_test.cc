// A corpus that cannot be read any more under a run: all ranks end after the same update, with the same message and a
// checkpoint, from which a run on the whole corpus goes on as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "base/trials.h"
#include "train/random_pipeline.h"
#include "train/sample_reader.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Samples that cannot be read from a position on.
class FailingSamples final : public Samples {
 public:
  FailingSamples(std::unique_ptr<const Samples> samples, std::int64_t end) : samples_(std::move(samples)), end_(end) {}
  std::int64_t seq_length() const override { return samples_->seq_length(); }
  std::int64_t samples_per_epoch() const override { return samples_->samples_per_epoch(); }
  std::vector<std::int32_t> lengths(SampleRange positions) const override { return samples_->lengths(positions); }
  SampleBatch make_batch(std::int64_t samples) const override { return samples_->make_batch(samples); }
  void read(SampleRange positions, SampleBatch& batch, std::int64_t at) const override {
    if (positions.first + positions.count > end_) throw EnvironmentError("the disk has a bad block");
    samples_->read(positions, batch, at);
  }
  TotalWeights total_weights(SampleRange positions) const override { return samples_->total_weights(positions); }

 private:
  std::unique_ptr<const Samples> samples_;
  std::int64_t end_;
};

struct LossRecorder final : TrainingObserver {
  explicit LossRecorder(std::function<void(std::int64_t)> after = {}) : after_update(std::move(after)) {}
  void iteration(const IterationReport& report) override {
    losses.push_back(report.loss);
    if (after_update) after_update(report.iteration);
  }
  void validation(std::int64_t iteration, const LossSums&) override { validations.push_back(iteration); }
  void saved(std::int64_t iteration, const fs::path&) override { saves.push_back(iteration); }
  std::function<void(std::int64_t)> after_update;
  std::vector<double> losses;
  std::vector<std::int64_t> validations, saves;
};

class FailingCorpus : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_attention_heads = 4;
    config_.model.config.num_layers = 4;
    config_.train_iters = 8;
    config_.optimizer.learning_rate.decay = 8;
  }

  struct Ending {
    std::vector<std::string> errors;  // of each rank
    LossRecorder first;
  };
  // `change`: what becomes of a rank's task before it runs.
  Ending run(const TrainConfig& config, const std::function<void(TrainingTask&, int rank)>& change,
             const std::function<void(std::int64_t)>& after_update = {}) {
    Ending ending{.errors = std::vector<std::string>(static_cast<std::size_t>(config.layout.mesh().ranks())),
                  .first = LossRecorder(after_update)};
    const TrainingData data = open_training_data(config);
    try {
      run_ranks({}, config.layout.mesh().ranks(), [&](Communicator& world) {
        const auto backend = make_cpu_backend({.guard_memory = config.backend.guard_memory});
        const auto mesh = std::make_shared<Mesh>(make_mesh(world, config.layout.mesh()));
        TrainingTask task = make_training_task(config, data, kVocab, mesh->coordinates());
        if (change) change(task, world.rank());
        Trainer trainer(config, *backend, std::move(task), mesh);
        trainer.start();
        LossRecorder silent;
        try {
          trainer.run(world.rank() == 0 ? ending.first : silent);
        } catch (const EnvironmentError& error) {
          ending.errors[static_cast<std::size_t>(world.rank())] = error.what();
          throw;
        }
      });
    } catch (const EnvironmentError&) {
    }
    return ending;
  }
  TrainingRun expect_goes_on(TrainConfig config, const TrainingRun& whole, const std::string& what) {
    config.output.load = config.output.save;
    TrainingRun rest = train(config);
    EXPECT_EQ(rest.parameters, whole.parameters) << what;
    return rest;
  }
};

TEST_F(FailingCorpus, OnAnyRankOfAnyLayoutEndsAllAfterTheSameUpdateAndNothingIsLost) {
  RandomSequence random(RandomStream{.seed = 12});
  for (int trial = 0; trial < trials(5); ++trial) {
    TrainConfig config = random_pipeline(config_, random);
    const std::string layout = text_of_layout(config);
    const TrainingRun whole = train(config);
    config.output.save = folder_ / fmt::format("run-{}", trial);
    const auto updates = 1 + static_cast<std::int64_t>(random.below(6));
    const auto bad = static_cast<int>(random.below(static_cast<std::uint64_t>(config.layout.mesh().ranks())));
    const Ending ending = run(config, [&](TrainingTask& task, int rank) {
      if (rank != bad) return;
      task.training = std::make_unique<FailingSamples>(std::move(task.training), updates * config.largest_batch());
    });
    EXPECT_THAT(ending.errors,
                Each(AllOf(HasSubstr("the disk has a bad block. The run ends after iteration"),
                           HasSubstr(fmt::format("iteration {}, which is saved", updates)), HasSubstr("data verify"))))
        << layout;
    EXPECT_EQ(ending.first.saves, std::vector{updates}) << layout;
    EXPECT_EQ(std::ssize(ending.first.losses), updates) << layout;
    expect_goes_on(config, whole, layout);
  }
}

TEST_F(FailingCorpus, InAValidationIsSavedBefore) {
  config_.layout.data_parallel = 2;
  config_.output.eval_interval = 3;
  const TrainingRun whole = train(config_);
  config_.output.save = folder_ / "run";
  const Ending ending = run(config_, [](TrainingTask& task, int rank) {
    if (rank == 1) task.validation = std::make_unique<FailingSamples>(std::move(task.validation), 0);
  });
  EXPECT_THAT(ending.errors, Each(HasSubstr("after iteration 3, which is saved")));
  EXPECT_THAT(ending.first.validations, IsEmpty());
  EXPECT_EQ(expect_goes_on(config_, whole, "validation").validations, whole.validations) << "it is made up for";
}

// The loss of a validation is there, and the scores are not.
TEST_F(FailingCorpus, InTheScoresOfAValidationLeavesItOwed) {
  config_.output.eval_interval = 3;
  config_.output.save = folder_ / "run";
  const auto scores = [](bool fails) {
    return [fails](TrainingTask& task, int) {
      task.scores = [fails](Executor&) -> std::vector<TaskScore> {
        if (fails) throw CorpusFailure("the disk has a bad block");
        return {TaskScore{}};
      };
    };
  };
  const Ending ending = run(config_, scores(true));
  EXPECT_THAT(ending.errors, Each(HasSubstr("after iteration 3, which is saved")));
  EXPECT_THAT(ending.first.validations, ElementsAre(3));
  config_.output.load = config_.output.save;
  EXPECT_THAT(run(config_, scores(false)).first.validations, ElementsAre(3, 6, 8));
}

TEST_F(FailingCorpus, BeforeTheFirstUpdateAndWithoutAPlaceToSaveSaysSo) {
  const auto failing_from = [](std::int64_t position) {
    return [position](TrainingTask& task, int) {
      task.training = std::make_unique<FailingSamples>(std::move(task.training), position);
    };
  };
  EXPECT_THAT(run(config_, failing_from(0)).errors, Each(HasSubstr("The run ends before its first update;")));
  EXPECT_THAT(run(config_, failing_from(8)).errors,
              Each(HasSubstr("after iteration 2; without --save nothing is kept")));
}

// What befalls the file itself; ids that no vocabulary has, and others.
TEST_F(FailingCorpus, IsOneThatIsCutOverwrittenOrLengthenedUnderTheRun) {
  const fs::path bin = folder_ / "corpus.bin";
  std::ifstream file(bin, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const auto overwritten = [&](char with) {
    std::ofstream(bin, std::ios::in | std::ios::binary) << std::string(content.size(), with);
  };
  const TrainingRun whole = train(config_);
  const std::vector<std::pair<std::string, std::function<void()>>> changes = {
      {"was cut short while it was read", [&] { fs::resize_file(bin, 0); }},
      {"holds token id 30583 at position", [&] { overwritten('w'); }},
      {"something has written to it", [&] { overwritten('\0'); }},
      {"bytes now, and had", [&] { fs::resize_file(bin, content.size() + 2); }},
  };
  for (const auto& [expected, change] : changes) {
    config_.output.save = folder_ / "run";
    fs::remove_all(config_.output.save);
    const Ending ending = run(config_, {}, [&](std::int64_t iteration) {
      if (iteration != 4) return;
      ::usleep(20000);  // the clock of files moves every few milliseconds
      change();
    });
    EXPECT_THAT(ending.errors, Each(AllOf(HasSubstr("corpus.bin'"), HasSubstr(expected),
                                          HasSubstr("after iteration 4, which is saved"))));
    std::ofstream(bin, std::ios::binary | std::ios::trunc) << content;
    expect_goes_on(config_, whole, expected);
  }
}

TEST_F(FailingCorpus, OtherContentOfTheSameSizeIsRefusedWhenTheRunGoesOnUnlessItIsAllowed) {
  config_.output.save = folder_ / "run";
  train(config_);
  const fs::path bin = folder_ / "corpus.bin";
  std::fstream(bin, std::ios::in | std::ios::out | std::ios::binary).seekp(100) << '\0' << '\0' << '\0' << '\0';
  config_.output.load = config_.output.save;
  config_.train_iters = 9;
  EXPECT_THAT(message_of<UserError>([&] { train(config_); }),
              AllOf(HasSubstr("as many documents and tokens but other content"), HasSubstr("--override-data")));
  config_.split.override_data = true;
  EXPECT_EQ(train(config_).result.iterations, 9);
}

}  // namespace
}  // namespace teratron::testing

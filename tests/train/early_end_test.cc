// Runs that are asked to end, by a signal to any rank or a clock, end on all ranks after the same update, with a
// checkpoint from which the run goes on as if it had not been stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/philox.h"
#include "base/trials.h"
#include "checkpoint/native/folders.h"
#include "train/early_end_fixture.h"
#include "train/random_pipeline.h"

namespace teratron::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class EarlyEnd : public EarlyEndFixture {
 protected:
  static void append(std::vector<double>& to, const std::vector<double>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
};

TEST_F(EarlyEnd, ASignalToAnyRankEndsAllAfterTheSameUpdateAndNothingIsLost) {
  RandomSequence random(RandomStream{.seed = 41});
  config_.output.eval_interval = 2;
  for (int trial = 0; trial < trials(12); ++trial) {
    TrainConfig config = random_pipeline(config_, random);
    const std::string layout = text_of_layout(config);
    const Outcome whole = run(config, undisturbed);
    config.output.save = folder_ / fmt::format("run-{}", trial);
    const int update = 1 + static_cast<int>(random.below(11));
    const int rank = static_cast<int>(random.below(static_cast<std::uint64_t>(config.layout.mesh().ranks())));
    const int signal = kEndSignals[random.below(kEndSignals.size())];
    Outcome both = run(config, signal_in(update, rank, signal));
    for (const TrainingResult& result : both.results) {
      EXPECT_EQ(result.end, RunEnd::kSignal) << layout;
      EXPECT_EQ(result.signal, signal) << layout;
      EXPECT_EQ(result.iterations, update) << layout;
    }
    EXPECT_THAT(both.first.saves, ElementsAre(update)) << layout;
    EXPECT_THAT(both.first.notices, ElementsAre(StartsWith(name_of_signal(signal)))) << layout;
    config.output.load = config.output.save;
    const Outcome rest = run(config, undisturbed);
    append(both.first.losses, rest.first.losses);
    append(both.first.validations, rest.first.validations);  // the one that the signal put off, too
    EXPECT_EQ(both.first.losses, whole.first.losses) << layout;
    EXPECT_EQ(both.first.validations, whole.first.validations) << layout;
  }
}

// Holds back what it hears of updates, as long as it may.
class HoldsBack final : public TrainingObserver {
 public:
  explicit HoldsBack(fs::path save) : save_(std::move(save)) {}
  void iteration(const IterationReport& report) override { held.push_back(report.iteration); }
  void flush() override {
    for (const std::int64_t iteration : held) EXPECT_THAT(iterations_in(save_), Not(Contains(iteration)));
    held.clear();
  }
  void validation(std::int64_t iteration, const LossSums&) override { EXPECT_THAT(held, IsEmpty()) << iteration; }
  void saved(std::int64_t iteration, const fs::path&) override { EXPECT_THAT(held, IsEmpty()) << iteration; }
  std::vector<std::int64_t> held;

 private:
  const fs::path save_;
};

TEST_F(EarlyEnd, UpdatesAreReportedBeforeACheckpointHoldsThemAndBeforeTheEnd) {
  RandomSequence random(RandomStream{.seed = 42});
  for (int trial = 0; trial < 8; ++trial) {
    TrainConfig config = config_;
    config.output.eval_interval = 1 + static_cast<std::int64_t>(random.below(5));
    config.output.save_interval = 1 + static_cast<std::int64_t>(random.below(5));
    if (trial % 4 != 0) config.output.save = folder_ / fmt::format("run-{}", trial);
    on_ranks(config, [&](Trainer& trainer, Communicator&) {
      trainer.start();
      HoldsBack observer(config.output.save);
      trainer.run(observer, signal_in(1 + static_cast<int>(random.below(14)), 0, SIGTERM)(0));
      EXPECT_THAT(observer.held, IsEmpty());
    });
  }
}

TEST_F(EarlyEnd, ASignalThatComesWhileAnUpdateIsComputedMakesItTheLast) {
  config_.output.trace = folder_ / "trace.json";
  on_ranks(config_, [](Trainer& trainer, Communicator&) {
    trainer.start();
    TrainingObserver silent;
    // It comes with the first backward pass.
    const auto computed = [&] {
      return trainer.trace()->text(0, trainer.executor().mesh()).find("backward") != std::string::npos;
    };
    EXPECT_EQ(trainer.run(silent, {.signal = [&] { return computed() ? SIGTERM : 0; }}).iterations, 1);
  });
}

TEST_F(EarlyEnd, ASignalWithoutAPlaceToSaveEndsTheRunAndSaysThatNothingIsKept) {
  const Outcome outcome = run(config_, signal_in(3, 0, SIGTERM));
  EXPECT_EQ(outcome.results[0].iterations, 3);
  EXPECT_THAT(outcome.first.notices, ElementsAre(HasSubstr("nothing is kept")));
}

TEST_F(EarlyEnd, CheckpointsByTimeReplaceOneAnotherAndChangeNothing) {
  config_.layout.data_parallel = 2;
  const Outcome without = run(config_, undisturbed);
  config_.output.save = folder_ / "run";
  config_.output.save_interval_in_mins = 3;
  const Outcome with = run(config_, clock_of);
  EXPECT_EQ(with.first.losses, without.first.losses);
  EXPECT_GE(with.first.saves.size(), 3U);
  EXPECT_LE(with.first.saves.size(), 7U);
  EXPECT_EQ(with.first.saves.back(), 12);
  EXPECT_THAT(iterations_in(config_.output.save), ElementsAre(12));

  config_.output.save = folder_ / "by count";
  config_.output.save_interval = 5;  // and then not by time
  EXPECT_THAT(run(config_, clock_of).first.saves, ElementsAre(5, 10, 12));
  EXPECT_THAT(iterations_in(config_.output.save), ElementsAre(5, 10, 12));

  config_.output.save = folder_ / "never";
  config_.output.save_interval = 0;
  config_.output.save_interval_in_mins = 0;
  EXPECT_THAT(run(config_, clock_of).first.saves, ElementsAre(12));
}

TEST_F(EarlyEnd, ACheckpointByTimeIsReplacedAfterAKillToo) {
  struct Killed {};
  struct DiesAfterASave final : TrainingObserver {
    void iteration(const IterationReport&) override {
      if (has_saved) throw Killed();
    }
    void saved(std::int64_t, const fs::path&) override { has_saved = true; }
    bool has_saved = false;
  };
  config_.output.save = folder_ / "run";
  config_.output.save_interval_in_mins = 3;
  on_ranks(config_, [&](Trainer& trainer, Communicator&) {
    trainer.start();
    DiesAfterASave observer;
    EXPECT_THROW(trainer.run(observer, clock_of(0)), Killed);
  });
  ASSERT_EQ(iterations_in(config_.output.save).size(), 1U);
  ASSERT_LT(iterations_in(config_.output.save).front(), 9);
  config_.output.load = config_.output.save;
  run(config_, clock_of);
  EXPECT_THAT(iterations_in(config_.output.save), ElementsAre(12));
  config_.train_iters = 24;  // that of the end stays
  run(config_, clock_of);
  EXPECT_THAT(iterations_in(config_.output.save), ElementsAre(12, 24));
}

TEST_F(EarlyEnd, TenMinutesPassBetweenCheckpointsUnlessAskedOtherwise) {
  config_.output.save = folder_ / "run";
  config_.train_iters = 40;
  const std::vector<std::int64_t> saves = run(config_, clock_of).first.saves;
  EXPECT_THAT(saves, ElementsAre(10, 20, 30, 40));
}

TEST_F(EarlyEnd, TheCommandEndsAfterItsDurationAndGoesOnFromThere) {
  config_.layout.data_parallel = 2;
  const Outcome whole = run(config_, undisturbed);
  config_.output.save = folder_ / "run";
  config_.output.exit_duration_in_mins = 6;
  config_.output.save_interval_in_mins = 0;
  Outcome both = run(config_, clock_of);
  for (const TrainingResult& result : both.results) EXPECT_EQ(result.end, RunEnd::kExitDuration);
  const std::int64_t done = both.results[0].iterations;
  EXPECT_EQ(done, 5);  // the clock is looked at once before the first update, and at 6 minutes with the fifth
  EXPECT_THAT(both.first.saves, ElementsAre(done));
  EXPECT_THAT(both.first.notices, ElementsAre(HasSubstr("--exit-duration-in-mins 6")));
  config_.output.load = config_.output.save;
  config_.output.exit_duration_in_mins = 0;
  append(both.first.losses, run(config_, undisturbed).first.losses);
  EXPECT_EQ(both.first.losses, whole.first.losses);
}

}  // namespace
}  // namespace teratron::testing

// Runs that are asked to end, by a signal to any rank, a clock or the validation loss, end on all ranks after the same
// update, with a checkpoint from which the run goes on as if it had not been stopped.
#include <gmock/gmock.h>

#include <gtest/gtest.h>
#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "base/trials.h"
#include "checkpoint/native/folders.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
namespace fs = std::filesystem;

struct Recorder final : TrainingObserver {
  void iteration(const IterationReport& report) override { losses.push_back(report.loss); }
  void validation(std::int64_t iteration, const LossSums& of_kinds) override {
    validations.push_back(of_kinds.total());
    validated.push_back(iteration);
  }
  void saved(std::int64_t iteration, const fs::path&) override { saves.push_back(iteration); }
  void notice(const std::string& text) override { notices.push_back(text); }
  std::vector<double> losses, validations;
  std::vector<std::int64_t> validated, saves;
  std::vector<std::string> notices;
};

struct Outcome {
  Recorder first;                       // what the first rank saw
  std::vector<TrainingResult> results;  // by rank
};

class EarlyEnd : public TrainingFixture {
 protected:
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

// Where a run of these validation losses ends by --early-stop, and where the lowest of them is; counted from 1.
std::size_t end_by_early_stop(const std::vector<double>& losses, std::int64_t patience, std::size_t& best) {
  best = 1;
  for (std::size_t i = 1; i < losses.size(); ++i) {
    if (losses[i] < losses[best - 1]) best = i + 1;
    if (static_cast<std::int64_t>(i + 1 - best) >= patience) return i + 1;
  }
  return losses.size();
}

TEST_F(EarlyEnd, EarlyStopAndBestFollowTheValidationLossesAcrossARestart) {
  config_.train_iters = 30;
  config_.optimizer.learning_rate.decay = 30;
  config_.optimizer.learning_rate.peak = 0.2;  // rough enough for the loss to rise now and then
  config_.output.eval_interval = 1;
  const std::vector<double> losses = run(config_, undisturbed).first.validations;
  int ended_early = 0;
  for (const std::int64_t patience : {1, 2, 4, 100}) {
    std::size_t best = 0;
    const auto end = static_cast<std::int64_t>(end_by_early_stop(losses, patience, best));
    TrainConfig config = config_;
    config.output.early_stop = patience;
    config.output.save_best = true;
    config.output.keep_last = 1;
    config.output.save = folder_ / fmt::format("run-{}", patience);
    const auto is_right = [&](const Outcome& outcome) {
      EXPECT_EQ(outcome.results[0].iterations, end) << patience;
      EXPECT_EQ(outcome.results[0].end, end < 30 ? RunEnd::kEarlyStop : RunEnd::kComplete);
      EXPECT_EQ(read_checkpoint_info(config.output.save / "best").state.iteration, static_cast<std::int64_t>(best));
      EXPECT_EQ(read_checkpoint_info(config.output.save).state.iteration, end);
      std::vector<std::int64_t> kept = {static_cast<std::int64_t>(best), end};
      kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
      EXPECT_EQ(iterations_in(config.output.save), kept);
    };
    const Outcome whole = run(config, undisturbed);
    is_right(whole);
    if (end < 30) {
      ++ended_early;
      EXPECT_THAT(whole.first.notices, Contains(HasSubstr(fmt::format("--early-stop {}", patience))));
    }
    fs::remove_all(config.output.save);
    run(config, signal_in(static_cast<int>(std::max<std::int64_t>(1, end / 2)), 0, SIGUSR1));
    config.output.load = config.output.save;
    is_right(run(config, undisturbed));
  }
  EXPECT_GE(ended_early, 2);
}

TEST_F(EarlyEnd, TheBestOnOtherValidationSamplesNoLongerCounts) {
  const auto write = [&](const std::string& name, int factor, std::int64_t documents) {
    IndexedDatasetWriter writer(folder_ / name, kVocab);
    for (; documents > 0; --documents) {
      std::vector<std::int32_t> tokens(40, 3);
      for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i] = (tokens[i - 1] * factor + 3) % kVocab;
      writer.add_document(tokens);
    }
    writer.commit();
  };
  write("learned", 7, 4);  // as the corpus to train on
  write("unknown", 9, 4);
  write("same", 9, 4);
  write("longer", 9, 5);
  config_.split.weights.clear();
  config_.output.eval_interval = 2;
  config_.output.save_best = true;
  const auto going_on = [&](const std::string& before, const std::string& after) {
    config_.output.save = folder_ / (before + "-" + after);
    TrainConfig config = config_;
    config.valid_data_path = {(folder_ / before).string()};
    config.train_iters = 6;
    run(config, undisturbed);
    config.output.load = config.output.save;
    config.valid_data_path = {(folder_ / after).string()};
    config.train_iters = 12;
    return run(config, undisturbed).first;
  };
  const auto best = [&] { return read_checkpoint_info(config_.output.save / "best").state.iteration; };

  EXPECT_THAT(going_on("learned", "learned").notices, IsEmpty());
  EXPECT_THAT(going_on("unknown", "unknown").notices, IsEmpty());
  const std::int64_t best_of_unknown = best();
  EXPECT_THAT(going_on("unknown", "same").notices, IsEmpty());
  EXPECT_EQ(best(), best_of_unknown);

  for (const auto& [before, after] : {std::pair("learned", "unknown"), std::pair("unknown", "longer")}) {
    const Recorder rest = going_on(before, after);
    EXPECT_THAT(rest.notices, ElementsAre(HasSubstr("validation reads other samples than before"))) << after;
    const auto lowest = std::ranges::min_element(rest.validations) - rest.validations.begin();
    EXPECT_EQ(best(), rest.validated.at(static_cast<std::size_t>(lowest))) << after;
  }
}

TEST_F(EarlyEnd, AStoppedRunThatIsStartedAgainHasNothingToDoUnlessItMayWaitLonger) {
  config_.optimizer.learning_rate.peak = 1;  // no validation is below the first for long
  config_.output.eval_interval = 2;
  config_.output.early_stop = 1;
  config_.output.save = folder_ / "run";
  const std::int64_t end = run(config_, undisturbed).results[0].iterations;
  ASSERT_LT(end, config_.train_iters);
  config_.output.load = config_.output.save;
  const auto has_work = [&](std::int64_t patience) {
    TrainConfig config = config_;
    config.output.early_stop = patience;
    bool has = false;
    on_ranks(config, [&](Trainer& trainer, Communicator&) {
      trainer.start();
      has = trainer.has_work();
    });
    return has;
  };
  EXPECT_FALSE(has_work(1));
  EXPECT_TRUE(has_work(2));
  EXPECT_TRUE(has_work(0));
  const Outcome again = run(config_, undisturbed);
  EXPECT_EQ(again.results[0].end, RunEnd::kEarlyStop);
  EXPECT_EQ(again.results[0].iterations, end);
  EXPECT_THAT(again.first.losses, IsEmpty());
  EXPECT_THAT(again.first.saves, IsEmpty());
}

TEST_F(EarlyEnd, RefusesToStopByValidationsWithoutAny) {
  const auto faults_of = [](const TrainConfig& config) {
    std::string all;
    for (const Fault& fault : config.faults()) all += fault.text + "\n";
    return all;
  };
  config_.data_path = {"x"};
  config_.output.early_stop = 2;
  config_.output.save_best = true;
  const std::string text = faults_of(config_);
  EXPECT_THAT(text, ::testing::AllOf(HasSubstr("--early-stop compares validations"), HasSubstr("--eval-interval"),
                                     HasSubstr("--save-best needs a place to save")));
  config_.output.save = folder_ / "run";
  config_.output.eval_interval = 1;
  config_.split.weights = "1";
  EXPECT_THROW(run(config_, undisturbed), UserError);
}

}  // namespace
}  // namespace teratron::testing

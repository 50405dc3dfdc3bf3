// The best validation of a run: what --early-stop and --save-best make of it, across restarts, on other validation
// samples and where the run goes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/native/folders.h"
#include "train/early_end_fixture.h"
#include "train/save_folder.h"

namespace teratron::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class BestOfRun : public EarlyEndFixture {};

// Where a run of these validation losses ends by --early-stop, and where the lowest of them is; counted from 1.
std::size_t end_by_early_stop(const std::vector<double>& losses, std::int64_t patience, std::size_t& best) {
  best = 1;
  for (std::size_t i = 1; i < losses.size(); ++i) {
    if (losses[i] < losses[best - 1]) best = i + 1;
    if (static_cast<std::int64_t>(i + 1 - best) >= patience) return i + 1;
  }
  return losses.size();
}

TEST_F(BestOfRun, EarlyStopAndBestFollowTheValidationLossesAcrossARestart) {
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

TEST_F(BestOfRun, TheBestOnOtherValidationSamplesNoLongerCounts) {
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

TEST_F(BestOfRun, TheBestOnMoreOrFewerSamplesNoLongerCounts) {
  config_.output.eval_interval = 2;
  config_.output.save_best = true;
  config_.output.save = folder_ / "run";
  config_.output.eval_iters = 1;
  config_.train_iters = 4;
  run(config_, undisturbed);
  config_.output.load = config_.output.save;
  const auto going_on = [&](std::int64_t eval_iters, std::int64_t batch) {
    config_.train_iters += 2;
    config_.output.eval_iters = eval_iters;
    config_.batch.global_batch_size = batch;
    return run(config_, undisturbed).first.notices;
  };
  const auto is_other = ElementsAre(HasSubstr("validation reads other samples than before"));
  EXPECT_THAT(going_on(1, 4), IsEmpty());
  EXPECT_THAT(going_on(2, 4), is_other);
  EXPECT_THAT(going_on(1, 8), IsEmpty());  // as many
  EXPECT_THAT(going_on(1, 4), is_other);
}

TEST_F(BestOfRun, GoingBackBringsBackTheLinkToTheBestUntilThen) {
  config_.output.eval_interval = 2;
  config_.output.save_interval = 1;
  config_.output.save_best = true;
  config_.output.save = folder_ / "run";
  run(config_, undisturbed);
  const auto best = [&] { return read_checkpoint_info(config_.output.save / "best").state.iteration; };
  const std::int64_t best_of_all = best(), back = best_of_all - 1;
  ASSERT_GT(best_of_all, 2) << "the first validation is not the lowest";
  config_.output.load = config_.output.save;
  config_.output.iteration = config_.train_iters = back;
  run(config_, undisturbed);
  EXPECT_EQ(best(), best_of_all) << "nothing was left to do";
  begin_save_folder(config_, back);
  ASSERT_FALSE(fs::exists(config_.output.save / "best"));
  run(config_, undisturbed);
  const std::int64_t before = read_checkpoint_info(config_.output.save).state.counter("best_validation_iteration", -1);
  EXPECT_LT(before, back);
  EXPECT_EQ(best(), before);
}

// Which comes at the old end alone, and would not have come in a run that was longer from the start.
TEST_F(BestOfRun, AnExtraValidationAtTheEndDoesNotStopARunThatIsContinued) {
  constexpr std::int64_t kLast = 30;
  config_.train_iters = kLast;
  config_.optimizer.learning_rate.decay = kLast;
  config_.optimizer.learning_rate.peak = 0.2;  // rough enough for the loss to rise now and then
  config_.output.eval_interval = 1;
  const std::vector<double> losses = run(config_, undisturbed).first.validations;
  const auto loss_after = [&](std::int64_t updates) { return losses.at(static_cast<std::size_t>(updates - 1)); };
  std::int64_t regular = 2, end = 3;  // the validation at the end is not below the regular one before
  while (regular < kLast && loss_after(end) < loss_after(regular)) {
    if (++end < std::min(2 * regular, kLast + 1)) continue;
    end = ++regular + 1;
  }
  ASSERT_LT(regular, kLast);
  config_.output.eval_interval = regular;
  config_.output.early_stop = 1;
  config_.output.save = folder_ / "run";
  config_.train_iters = end;
  run(config_, undisturbed);
  config_.output.load = config_.output.save;
  config_.train_iters = 2 * regular;
  EXPECT_EQ(run(config_, undisturbed).results[0].iterations, 2 * regular);
}

TEST_F(BestOfRun, AStoppedRunThatIsStartedAgainHasNothingToDoUnlessItMayWaitLonger) {
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

TEST_F(BestOfRun, RefusesToStopByValidationsWithoutAny) {
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

// A run from code: what a program gets that makes a Run, without the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "run/pretraining.h"
#include "run/run.h"
#include "runtime/backend_choice.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class RunTest : public TrainingFixture {
 protected:
  // The start of a run with the fixture's corpus.
  TrainStart start(std::vector<std::string> flags) const {
    flags.insert(flags.begin(),
                 {"--data-path=" + config_.data_path.front(), "--vocab-size=50", "--num-layers=2", "--hidden-size=24",
                  "--num-attention-heads=3", "--seq-length=16", "--micro-batch-size=2", "--lr=0.01",
                  "--lr-decay-style=constant", "--split=9,1", "--save=" + save().string(), "--peak-tflops=1"});
    return read_train_start(flags);
  }
  std::filesystem::path save() const { return folder_ / "run"; }

  std::vector<std::string> lines_of_log(const std::string& name = "metrics.jsonl") const {
    std::ifstream file(save() / name);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
};

struct Losses final : TrainingObserver {
  explicit Losses(std::vector<double>& all) : losses(all) {}
  void iteration(const IterationReport& report) override { losses.push_back(report.loss); }
  std::vector<double>& losses;
};

struct AtEachUpdate final : TrainingObserver {
  explicit AtEachUpdate(std::function<void(const IterationReport&)> body) : body_(std::move(body)) {}
  void iteration(const IterationReport& report) override { body_(report); }
  std::function<void(const IterationReport&)> body_;
};

TEST_F(RunTest, OneThatHasStoppedEarlySaysThatNothingIsLeftToDo) {
  // No validation at this rate is below the first.
  pretrain(start({"--lr=1", "--train-iters=12", "--eval-interval=2", "--early-stop=1"}));
  const std::size_t lines = lines_of_log().size();
  ::testing::internal::CaptureStderr();
  pretrain(start({"--lr=1", "--load=" + save().string()}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("has ended after 4 iterations of 12 by --early-stop 1"));
  EXPECT_EQ(lines_of_log().size(), lines);
}

TEST_F(RunTest, OneWithNothingLeftToDoTouchesNoFileOfThatName) {
  pretrain(start({"--train-iters=2"}));
  const std::filesystem::path mine = folder_ / "mine.txt", other = folder_ / "traces" / "trace.json";
  write_file_atomically(mine, "mine");
  for (const auto& trace : {mine, other}) pretrain(start({"--load=" + save().string(), "--trace=" + trace.string()}));
  EXPECT_EQ(read_file(mine), "mine");
  EXPECT_FALSE(std::filesystem::exists(other.parent_path()));
}

TEST_F(RunTest, OneThatFailsBeforeItsFirstUpdateLeavesNoFolder) {
  const std::filesystem::path mine = folder_ / "mine.txt", deep = folder_ / "a" / "b" / "c";
  write_file_atomically(mine, "mine");
  const auto run = [&] { pretrain(start({"--train-iters=2", "--save=" + deep.string(), "--trace=" + mine.string()})); };
  EXPECT_THAT(message_of<UserError>(run), HasSubstr("is no trace of teratron"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "a"));
  EXPECT_EQ(read_file(mine), "mine");
}

TEST_F(RunTest, NoMoreSamplesAreSaidToRunAtATimeThanAnUpdateHas) {
  ::testing::internal::CaptureStderr();
  pretrain(start({"--train-iters=1", "--global-batch-size=1"}));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("1 sample an update, 1 at a time"));
}

TEST_F(RunTest, FoldersThatWereMadeGoUnlessSomethingLiesThere) {
  const std::filesystem::path top = folder_ / "x", inmost = top / "y" / "z";
  { const MadeFolders made(inmost); }
  EXPECT_FALSE(std::filesystem::exists(top));
  EXPECT_ANY_THROW(MadeFolders(top / std::string(300, 'n')));
  EXPECT_FALSE(std::filesystem::exists(top));
  {
    const MadeFolders made(inmost);
    write_file_atomically(top / "y" / "mine.txt", "mine");
  }
  EXPECT_TRUE(std::filesystem::exists(top / "y" / "mine.txt"));
  EXPECT_FALSE(std::filesystem::exists(inmost));
}

TEST_F(RunTest, GoesOnWhereItWasAndLogsEveryUpdateOnce) {
  const auto losses_of = [&](const TrainStart& one) {
    std::vector<double> losses;
    const PretrainingResult result =
        pretrain(one, [&](teratron::Run& run) { run.add(std::make_unique<Losses>(losses)); });
    EXPECT_TRUE(result.is_first_process);
    EXPECT_THAT(result.peak_memory, SizeIs(one.config.layout.mesh().ranks()));
    return losses;
  };
  const std::vector<double> whole = losses_of(start({"--train-iters=6", "--save=" + (folder_ / "whole").string()}));
  std::vector<double> parts = losses_of(start({"--train-iters=4", "--tp=3"}));
  EXPECT_THAT(parts, SizeIs(4));
  const std::vector<double> rest = losses_of(start({"--train-iters=6", "--load=" + save().string(), "--tp=1"}));
  parts.insert(parts.end(), rest.begin(), rest.end());
  ASSERT_THAT(parts, SizeIs(6));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(parts[i], whole[i], 1e-5 * whole[i]) << i;
  EXPECT_THAT(lines_of_log(), SizeIs(7));  // six updates and the validation at the end
}

// The flag is the checkpoint's, so the run that goes on has not to repeat it.
TEST_F(RunTest, KeepsNumericsOfEveryLayerAndGoesOnWithThem) {
  pretrain(start({"--train-iters=4", "--trace-numerics", "--save-interval=2"}));
  const std::vector<std::string> before = lines_of_log("numerics.jsonl");
  ASSERT_THAT(before, SizeIs(4 * 3));  // the embedding and two layers
  pretrain(start({"--train-iters=3", "--load=" + save().string(), "--iteration=2"}));
  const std::vector<std::string> after = lines_of_log("numerics.jsonl");
  // An update that is done again has the numbers that it had.
  EXPECT_EQ(after, std::vector<std::string>(before.begin(), before.begin() + 9));
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_THAT(after[i], HasSubstr(fmt::format("{{\"iteration\":{},\"layer\":{},\"output_rms\":", i / 3 + 1,
                                                static_cast<int>(i % 3) - 1)));
    EXPECT_THAT(after[i], ::testing::Not(HasSubstr("null")));
  }
}

// The choice is recorded as if it had been given, and the run that goes on keeps it.
TEST_F(RunTest, ChoosesItsPipelineAndKeepsIt) {
  setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  const std::vector<std::string> shape = {"--num-layers=4", "--global-batch-size=8", "--train-iters=2",
                                          "--seq-length=64"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), shape.begin(), shape.end());
    return start(std::move(more));
  };
  std::vector<std::vector<double>> losses;
  for (const std::string schedule : {"auto", "1f1b"}) {
    losses.emplace_back();
    pretrain(with({"--pp=2", "--schedule=" + schedule, "--save=" + (folder_ / schedule).string()}),
             [&](teratron::Run& run) { run.add(std::make_unique<Losses>(losses.back())); });
  }
  unsetenv("XDG_CACHE_HOME");
  ASSERT_THAT(losses[0], SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(losses[0][i], losses[1][i], 1e-5 * losses[1][i]) << i;
  const TrainStart next = with({"--load=" + (folder_ / "auto").string(), "--train-iters=4"});
  EXPECT_FALSE(next.given.is_auto);
  EXPECT_TRUE(next.config.pipeline.schedule.has_value());
  EXPECT_NE(next.config.pipeline.token_slices, "auto");
}

TEST_F(RunTest, ChoosesTheLayersOfStagesAlone) {
  setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
  const auto with = [&](std::vector<std::string> more) {
    for (const char* one : {"--num-layers=5", "--global-batch-size=4", "--seq-length=64"}) more.emplace_back(one);
    return start(std::move(more));
  };
  const TrainStart asked = with({"--pp=2", "--pipeline-layout=auto", "--schedule=gpipe", "--train-iters=2"});
  EXPECT_TRUE(asked.given.layout_is_auto);
  EXPECT_FALSE(asked.given.layout);
  std::vector<double> losses;
  pretrain(asked, [&](teratron::Run& run) { run.add(std::make_unique<Losses>(losses)); });
  unsetenv("XDG_CACHE_HOME");
  ASSERT_THAT(losses, SizeIs(2));
  const TrainStart next = with({"--load=" + save().string(), "--train-iters=4"});
  EXPECT_FALSE(next.given.chooses());
  EXPECT_EQ(next.config.pipeline.schedule, pipeline::ScheduleKind::kGpipe);
  const std::vector<std::int64_t> layers = cell_layers(next.config);  // five cannot be shared alike
  EXPECT_THAT(layers, SizeIs(2));
  EXPECT_EQ(comma_separated(next.config.pipeline.layout), layers);
  EXPECT_EQ(layers[0] + layers[1], 5);
}

TEST_F(RunTest, HoldsItsFolderAndLetsItGo) {
  std::string refused;
  pretrain(start({"--train-iters=2"}), [&](teratron::Run& run) {
    run.add(std::make_unique<AtEachUpdate>([&](const IterationReport&) {
      try {
        HeldSaveFolder other(save());
      } catch (const UserError& error) {
        refused = error.what();
      }
    }));
  });
  EXPECT_THAT(refused, HasSubstr(save().string()));
  HeldSaveFolder after(save());
}

// Its state for `top` is written until then, and what is made of its best checkpoint lies there, too.
TEST_F(RunTest, HoldsItsFolderUntilItIsGone) {
  const TrainStart one = start({"--train-iters=2"});
  RunLaunch launch(one.config);
  const TrainingData data = open_training_data(one.config);
  launch.run(to_toml(one.config), [&](const Rank& rank) {
    const std::unique_ptr<Backend> backend = make_backend(one.config.backend, rank);
    teratron::Run run(
        {.launch = launch, .rank = rank, .backend = *backend, .config = one.config},
        make_training_task(one.config, data, one.config.model.vocabulary_size(), rank.mesh->coordinates()));
    run.run();
    EXPECT_THROW(HeldSaveFolder other(save()), UserError);
  });
  HeldSaveFolder after(save());
}

TEST_F(RunTest, IsEndedByASignalAfterASave) {
  const PretrainingResult result = pretrain(start({"--train-iters=1000000"}), [](teratron::Run& run) {
    run.add(std::make_unique<AtEachUpdate>([](const IterationReport&) { std::raise(SIGTERM); }));
  });
  EXPECT_EQ(result.training.signal, SIGTERM);
  EXPECT_EQ(result.training.end, RunEnd::kSignal);
  const TrainStart next = start({"--load=" + save().string()});
  ASSERT_TRUE(next.checkpoint);
  EXPECT_EQ(next.checkpoint->state.iteration, result.training.iterations);
}

TEST_F(RunTest, AValidationThatIsMadeUpForIsLoggedOnce) {
  const PretrainingResult result =
      pretrain(start({"--train-iters=1000000", "--eval-interval=1"}), [](teratron::Run& run) {
        run.add(std::make_unique<AtEachUpdate>([](const IterationReport& report) {
          if (report.iteration == 1) std::raise(SIGTERM);
        }));
      });
  ASSERT_EQ(result.training.end, RunEnd::kSignal);
  const std::int64_t owed = result.training.iterations;
  // The second start finds the line of the first, and again the checkpoint from before it, as after a kill.
  for (int time = 0; time < 2; ++time) {
    pretrain(start(
        {"--load=" + save().string(), fmt::format("--iteration={}", owed), fmt::format("--train-iters={}", owed + 1)}));
    const std::vector<std::string> lines = lines_of_log();
    EXPECT_EQ(std::ranges::count_if(lines,
                                    [&](const std::string& line) {
                                      return line.starts_with(fmt::format("{{\"iteration\":{},", owed)) &&
                                             line.find("\"validation_loss\"") != line.npos;
                                    }),
              1);
  }
}

TEST(ObserverList, HandsOnUpdatesTogetherAndInOrder) {
  std::vector<std::string> seen;
  {
    ObserverList list;
    for (const char* name : {"a", "b"}) {
      list.add(std::make_unique<AtEachUpdate>([&seen, name](const IterationReport& report) {
        seen.push_back(fmt::format("{}{}", name, report.iteration));
      }));
    }
    list.flush();
    list.iteration({.iteration = 1});
    list.iteration({.iteration = 2});
    list.flush();
    EXPECT_THAT(seen, ElementsAre("a1", "b1", "a2", "b2"));
    list.iteration({.iteration = 3});
    list.notice("why the run ends");
    EXPECT_THAT(seen, SizeIs(6));
    list.iteration({.iteration = 4});
  }
  EXPECT_THAT(seen, SizeIs(8));
}

}  // namespace
}  // namespace teratron::testing

// Runs with --async-save leave the checkpoints of runs without it, bit for bit, in every layout, and end as they do.
#include <gmock/gmock.h>

#include <csignal>
#include <random>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/native/folders.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct SaveRecorder final : TrainingObserver {
  void saved(std::int64_t iteration, const fs::path& folder) override {
    if (!folder.empty()) {
      EXPECT_EQ(read_checkpoint_info(folder).state.iteration, iteration);
    }
    saves.push_back(iteration);
    if (on_saved) on_saved(iteration);
  }
  std::function<void(std::int64_t)> on_saved;
  std::vector<std::int64_t> saves;
};

class AsyncSave : public TrainingFixture {
 protected:
  // Checkpoints that the first rank saw saved.
  std::vector<std::int64_t> run(const TrainConfig& config, const std::function<RunControl(int rank)>& control = {},
                                const std::function<void(std::int64_t)>& on_saved = {}) {
    std::vector<std::int64_t> saves;
    on_ranks(config, [&](Trainer& trainer, Communicator& world) {
      trainer.start();
      SaveRecorder recorder;
      if (world.rank() == 0) recorder.on_saved = on_saved;
      trainer.run(recorder, control ? control(world.rank()) : RunControl{});
      if (world.rank() == 0) saves = recorder.saves;
    });
    return saves;
  }

  TrainConfig saving_to(const TrainConfig& config, const std::string& name, bool async) const {
    TrainConfig to = config;
    to.output.save = folder_ / name;
    to.output.async_save = async;
    return to;
  }

  static void expect_same_checkpoints(const fs::path& a, const fs::path& b, const std::string& what) {
    ASSERT_EQ(iterations_in(a), iterations_in(b)) << what;
    for (const std::int64_t iteration : iterations_in(a)) {
      const fs::path one = iteration_folder(a, iteration), other = iteration_folder(b, iteration);
      EXPECT_EQ(read_checkpoint_info(one).state, read_checkpoint_info(other).state) << what;
      for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
        EXPECT_TRUE(read_file(one / file) == read_file(other / file)) << what << ", " << file << " of " << iteration;
      }
      EXPECT_TRUE(verify_checkpoint(other).intact()) << what;
    }
    EXPECT_EQ(find_checkpoint(a).filename(), find_checkpoint(b).filename()) << what;
  }
};

TEST_F(AsyncSave, CheckpointsAreThoseOfSavesThatWaitInEveryLayout) {
  struct Layout {
    std::int64_t tensor, pipeline, data;
    bool sharded, bf16;
  };
  const Layout layouts[] = {{1, 1, 1, false, false}, {2, 1, 1, false, true}, {1, 2, 1, false, false},
                            {1, 1, 2, true, true},   {2, 2, 2, true, false}, {1, 2, 2, true, true}};
  std::mt19937 random(5);
  config_.model.config.num_attention_heads = 4;
  config_.train_iters = 5;
  for (const Layout& layout : layouts) {
    TrainConfig config = config_;
    config.layout.tensor_parallel = layout.tensor;
    config.layout.pipeline_parallel = layout.pipeline;
    config.layout.data_parallel = layout.data;
    config.layout.distributed_optimizer = layout.sharded;
    config.backend.bf16 = layout.bf16;
    config.output.save_interval = 1 + static_cast<std::int64_t>(random() % 3);
    config.output.keep_last = static_cast<std::int64_t>(random() % 4);
    const std::string what =
        fmt::format("t {} p {} d {} sharded {} bf16 {}, every {}, keep {}", layout.tensor, layout.pipeline, layout.data,
                    layout.sharded, layout.bf16, config.output.save_interval, config.output.keep_last);
    fs::remove_all(folder_ / "waits");
    fs::remove_all(folder_ / "beside");
    const std::vector<std::int64_t> saves = run(saving_to(config, "waits", false));
    EXPECT_EQ(run(saving_to(config, "beside", true)), saves) << what;
    expect_same_checkpoints(folder_ / "waits", folder_ / "beside", what);
  }
}

TEST_F(AsyncSave, BestByTimeAndASignalAsWithSavesThatWait) {
  // The first rank's clock: a minute with every look at it.
  const auto by_time = [](int rank) {
    return RunControl{.seconds = [rank, now = 0.0]() mutable { return rank == 0 ? now += 60 : 0.0; }, .began = 0};
  };
  const auto with_signal = [](int rank) {
    if (rank != 0) return RunControl{};
    return RunControl{.signal = [calls = 0]() mutable { return ++calls < 5 ? 0 : SIGTERM; }};
  };
  config_.output.save_best = true;
  config_.output.eval_interval = 2;
  config_.output.save_interval_in_mins = 2;
  config_.layout.data_parallel = 2;
  int round = 0;
  for (const std::function<RunControl(int)>& control :
       {std::function<RunControl(int)>(by_time), std::function<RunControl(int)>(with_signal)}) {
    const std::string a = fmt::format("waits{}", round), b = fmt::format("beside{}", round);
    const std::vector<std::int64_t> saves = run(saving_to(config_, a, false), control);
    EXPECT_EQ(run(saving_to(config_, b, true), control), saves);
    expect_same_checkpoints(folder_ / a, folder_ / b, b);
    EXPECT_EQ(fs::read_symlink(folder_ / a / kBestLink), fs::read_symlink(folder_ / b / kBestLink));
    ++round;
  }
}

TEST_F(AsyncSave, WeightsWhoseLossIsNotFiniteNeverTakeAName) {
  config_.optimizer.learning_rate.peak = 1e30;
  config_.optimizer.learning_rate.warmup = 0;
  config_.output.save_interval = 1;
  const TrainConfig config = saving_to(config_, "diverged", true);
  EXPECT_THROW(run(config), DivergedError);
  EXPECT_THAT(iterations_in(config.output.save), IsEmpty());
  EXPECT_FALSE(fs::exists(config.output.save / kTrackerFile));
}

TEST_F(AsyncSave, AnErrorOfWritingEndsTheRunAndWhatStoodStands) {
  config_.output.save_interval = 2;
  config_.layout.data_parallel = 2;
  const TrainConfig config = saving_to(config_, "failing", true);
  std::string message;
  try {
    run(config, {}, [&](std::int64_t iteration) {
      if (iteration == 2) fs::create_directory(config.output.save / (std::string(kTrackerFile) + ".partial"));
    });
  } catch (const EnvironmentError& error) {
    message = error.what();
  }
  EXPECT_THAT(message, HasSubstr(std::string("cannot write '") + (config.output.save / kTrackerFile).string()));
  fs::remove(config.output.save / (std::string(kTrackerFile) + ".partial"));
  EXPECT_EQ(find_checkpoint(config.output.save), iteration_folder(config.output.save, 2));
}

TEST_F(AsyncSave, NeedsAPlaceToSaveAndTakesTheMemoryOfTheRankThatWrites) {
  config_.output.async_save = true;
  std::string faults;
  for (const Fault& fault : config_.faults()) faults += fault.text;
  EXPECT_THAT(faults, HasSubstr("--async-save needs a place to save"));
  config_.output.save = folder_ / "run";
  config_.layout.data_parallel = 2;
  on_ranks(config_,
           [&](Trainer& trainer, Communicator& world) { EXPECT_EQ(trainer.bytes_of_copy() > 0, world.rank() == 0); });
}

}  // namespace
}  // namespace teratron::testing

// `teratron train` where checkpoints, or the folder that they lie in, were moved, linked or renamed by others.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "checkpoint/native/folders.h"
#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

class MovedCheckpoints : public TrainingCommands<1000> {
 protected:
  Words small(const std::string& save, const std::string& iterations, const Words& more = {}) const {
    return training_.command(with({"--num-layers", "1", "--hidden-size", "16", "--seq-length", "8", "--save",
                                   path(save), "--train-iters", iterations, "--lr-decay-iters", "100"},
                                  more));
  }
  void to_bulk(const std::string& run, std::int64_t iteration) const {
    fs::create_directories(path("bulk"));
    const fs::path link = iteration_folder(path(run), iteration), moved = path("bulk") / link.filename();
    fs::rename(link, moved);
    fs::create_directory_symlink(moved, link);
  }
};

TEST_F(MovedCheckpoints, ToAnotherDiskWithALinkLeftGoOnInTheirFolder) {
  must(small("run", "2", {"--save-interval", "1"}));
  to_bulk("run", 2);
  must(small("whole", "4"));
  for (const Words& save : {Words{}, Words{"--save", path("run")}}) {
    const Outcome resumed =
        must(with({"train", "--load", path("run"), "--iteration", "2", "--train-iters", "4"}, save));
    EXPECT_THAT(resumed.errors, HasSubstr("saves to '" + path("run") + "'"));
    EXPECT_EQ(read_file(path("run/iter_0000004/model.safetensors")),
              read_file(path("whole/iter_0000004/model.safetensors")));
    EXPECT_TRUE(fs::is_symlink(path("run/iter_0000002")));
  }
  EXPECT_FALSE(fs::exists(path("bulk/iter_0000004")));
}

TEST_F(MovedCheckpoints, UnderAnotherNumberAreRefusedAndNothingChanges) {
  must(small("run", "2"));
  fs::rename(path("run/iter_0000002"), path("run/iter_0000003"));
  for (const Words& words : {Words{"train", "--load", path("run"), "--iteration", "3", "--train-iters", "5"},
                             Words{"train", "--load", path("run/iter_0000003"), "--train-iters", "5"},
                             Words{"eval", "loss", "--load", path("run/iter_0000003"), "--data-path", path("data")},
                             Words{"checkpoint", "info", path("run/iter_0000003")},
                             Words{"checkpoint", "verify", path("run/iter_0000003")}}) {
    EXPECT_THAT(refused(words), AllOf(HasSubstr("holds the checkpoint of iteration 2"), HasSubstr("iter_0000002")));
  }
  EXPECT_EQ(iterations_in(path("run")), (std::vector<std::int64_t>{3}));
}

TEST_F(MovedCheckpoints, ThatMayNotBeReadStartNoOtherRun) {
  must(small("run", "2"));
  must(small("model", "1"));
  // A folder of that name in the way of --load's: as an unreadable one, it is not taken for none.
  fs::create_symlink("loop", path("loop"));
  EXPECT_THAT(refused(with({"train", "--load", path("loop"), "--finetune", path("model")},
                           {"--data-path", path("data"), "--train-iters", "3"})),
              HasSubstr("cannot be read"));
}

TEST_F(MovedCheckpoints, FileInPlaceOfTheFolderOfARunStays) {
  ChildProgram program(with({TERATRON_BINARY}, small("run", "1000000")));
  TinyTraining::wait_for_update(program, path("run"));
  fs::rename(path("run"), path("away"));
  write_file_atomically(path("run"), "precious");
  ::kill(program.pid(), SIGTERM);
  EXPECT_NE(program.wait(std::chrono::seconds(60)).exit_code, 0);
  EXPECT_EQ(read_file(path("run")), "precious");
}

TEST_F(MovedCheckpoints, AFolderThatARunCannotHoldIsSaidToBeThat) {
  fs::create_directory(path("run"));
  write_file_atomically(path("precious"), "x");
  fs::create_symlink(path("precious"), path("run/run.lock"));
  const Outcome linked = run_teratron(small("run", "1"));
  EXPECT_EQ(linked.exit_code, 3) << linked.errors;
  EXPECT_THAT(linked.errors, AllOf(HasSubstr("run.lock' is a link"), Not(HasSubstr("free some space"))));
  EXPECT_EQ(read_file(path("precious")), "x");
}

}  // namespace
}  // namespace teratron::testing

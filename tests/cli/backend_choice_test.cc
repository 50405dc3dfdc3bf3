// --backend cuda from the command line: on a machine without a GPU one clear error, and nothing begun.

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

TEST(BackendChoice, CudaWithoutAGpuSaysWhatToDo) {
  const TinyTraining training;
  const std::string save = training.path("run");
  for (const Words& layout : {Words{}, Words{"--dp", "2"}}) {
    const Outcome outcome =
        run_teratron(training.command(with({"--train-iters", "1", "--backend", "cuda", "--save", save}, layout)));
    if (outcome.exit_code == 0) GTEST_SKIP() << "there is a GPU here";
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("error: "), HasSubstr("--backend cpu")));
    EXPECT_FALSE(std::filesystem::exists(save));
  }
}

}  // namespace
}  // namespace teratron::testing

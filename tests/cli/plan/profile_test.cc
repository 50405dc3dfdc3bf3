// teratron profile, as a user runs it, and what train and simulate make of the file.

#include <numeric>

#include "base/turn.h"
#include "cli/tiny_training.h"
#include "comm/process/launched_job.h"

namespace teratron::testing {
namespace {

Words profile_command(const Words& more) {
  return with(words_of("profile --repeats 1 --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
                       "--micro-batch-size 2 --hidden-dropout 0.1 --attention-dropout 0.1 --pp 2"),
              more);
}

TEST(ProfileCommand, MeasuresWhatTrainSlicesByAndSimulatePredictsWith) {
  const TinyTraining training;
  const std::string file = training.path("profile.json");
  const Outcome measured = must(profile_command({"--tokenizer", training.path("tokenizer"), "--output", file}));
  EXPECT_THAT(measured.output, AllOf(HasSubstr("stage 1 forward"), HasSubstr("a3"), HasSubstr("held out"),
                                     HasSubstr("predicted"), HasSubstr(file)));
  // Before the first step, with what it may take; after it; and at the end.
  EXPECT_THAT(measured.errors, AllOf(::testing::ContainsRegex("measuring what slices of 32 tokens cost: 0 of [0-9]+ "
                                                              "steps, about .* left\n"),
                                     HasSubstr(": 1 of "), ::testing::ContainsRegex(": ([0-9]+) of ([0-9]+) steps\n")));

  const Words slicing = {"--pp", "2", "--token-slices", "auto", "--profile", file, "--train-iters", "2"};
  const Outcome trained = must(training.command(slicing));
  EXPECT_THAT(trained.errors, AllOf(HasSubstr("by the profile"), Not(HasSubstr("measuring what"))));

  EXPECT_THAT(refused(training.command(with(slicing, {"--recompute-granularity", "full"}))),
              AllOf(HasSubstr("recompute none, here full"), HasSubstr("teratron profile")));

  const Json simulated = json_of({"simulate", "--schedule", "terapipe", "--stages", "2", "--micro-batches", "1",
                                  "--slices", "auto", "--profile", file});
  const std::vector<int> slices = simulated.at("slice_tokens");
  EXPECT_EQ(std::accumulate(slices.begin(), slices.end(), 0), 32);
}

TEST(ProfileUnderMpirun, IsMeasuredByProcessesAndTheirSlicesTrainAlikeBitByBit) {
  if (const std::string reason = why_no(LaunchedBy::kMpirun); !reason.empty()) GTEST_SKIP() << reason;
  const TinyTraining training;
  const auto run = [](const Words& words) {
    const Words started = with({TERATRON_MPIRUN, "--oversubscribe", "-n", "2", TERATRON_BINARY}, words);
    return ChildProgram(started, mpirun_environment()).wait(std::chrono::seconds(120));
  };
  const Outcome measured =
      run(profile_command({"--tokenizer", training.path("tokenizer"), "--out", training.path("profile.json")}));
  ASSERT_EQ(measured.exit_code, 0) << measured.errors;
  EXPECT_THAT(measured.errors, HasSubstr("measuring what slices of 32 tokens cost"));
  for (const char* folder : {"first", "second"}) {
    const Outcome trained =
        run(training.command({"--pp", "2", "--token-slices", "auto", "--profile", training.path("profile.json"),
                              "--train-iters", "4", "--save", training.path(folder)}));
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    EXPECT_THAT(trained.errors, AllOf(HasSubstr("by the profile"), Not(HasSubstr("measuring what"))));
  }
  EXPECT_EQ(TinyTraining::losses(training.path("first")), TinyTraining::losses(training.path("second")));
  EXPECT_EQ(TinyTraining::losses(training.path("first")).size(), 4U);
}

TEST(ProfileCommand, WritesJsonThatHoldsTheProfileAndItsErrors) {
  const TemporaryFolder folder;
  const Json json = json_of(profile_command({"--vocab-size", "100", "--output", (folder / "p.json").string()}));
  EXPECT_EQ(json.at("profile"), Json::parse(read_file(folder / "p.json")));
  EXPECT_GT(json.at("held_out_mean_error"), 0);
  EXPECT_GE(json.at("held_out_worst_error"), json.at("held_out_mean_error"));
  for (const Json& iteration : json.at("iterations")) {
    EXPECT_GT(iteration.at("predicted_ms"), 0);
    EXPECT_GT(iteration.at("measured_ms"), 0);
  }
}

TEST(ProfileCommand, TellsWhatIsWrongBeforeItMeasures) {
  const auto errors = [](const Words& more) {
    const std::string text = refused(profile_command(more));
    EXPECT_THAT(text, Not(HasSubstr("measuring what")));
    return text;
  };
  EXPECT_THAT(errors({}), HasSubstr("vocabulary"));
  EXPECT_THAT(errors({"--vocab-size", "100", "--pp", "5"}), HasSubstr("--pipeline-model-parallel-size"));
  EXPECT_THAT(errors({"--vocab-size", "100", "--repeats", "0"}), HasSubstr("--repeats"));
  EXPECT_THAT(errors({"--vocab-size", "100", "--seq-length", "4"}), HasSubstr("8 tokens or more"));
  EXPECT_THAT(errors({"--vocab-size", "100", "--train-iters", "2"}), HasSubstr("--train-iters"));
}

// Ranks that wait for each other take minutes under the sanitizers, and a third of a minute elsewhere.
#ifdef TERATRON_SANITIZED
const std::string kDevices = "1";
#else
const std::string kDevices = has_its_turn(0, 3) ? "2" : "1";
#endif

TEST(ProfileCommand, AClusterHasAPlaceOfItsOwn) {
  const TemporaryFolder folder;
  const auto errors = [](const Words& more) { return refused(with({"profile", "--cluster"}, more)); };
  const std::string file = (folder / "m.toml").string();
  EXPECT_THAT(errors({file, "--json", file}), HasSubstr("choose another name for the result"));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_THAT(errors({"-", "--json", "-"}), HasSubstr("--cluster and --json both go to standard output"));
  EXPECT_THAT(errors({"dgx-h100"}), HasSubstr("a preset, which plan and simulate take in place of a file"));
}

TEST(ProfileCommand, MeasuresTheMachineAsAClusterThatSimulateReads) {
  const TinyTraining training;
  const std::string file = training.path("machine.toml"), json = training.path("machine.json");
  // On standard output, where nothing else goes then.
  const Outcome outcome = must({"profile", "--cluster", "-", "--json", json, "--dp", kDevices, "--repeats", "1"});
  EXPECT_THAT(outcome.output, AllOf(StartsWith("name = "), Not(HasSubstr("The cost model"))));
  EXPECT_THAT(outcome.errors, HasSubstr("The cost model"));
  write_file_atomically(file, outcome.output);
  const Json measured = Json::parse(read_file(json));
  EXPECT_EQ(measured.at("devices"), std::stoi(kDevices));
  EXPECT_GT(measured.at("constants").at("product_efficiency"), 0);
  EXPECT_THAT(read_file(file), HasSubstr("backend = \"cpu\""));
  // Beside whatever else runs, and sanitizers: that the fit is of these passes at all.
  EXPECT_LT(measured.at("mean_error"), 0.8);
  const Json simulated =
      json_of({"simulate", "--cluster", file, "--stages", kDevices, "--num-layers", "2", "--hidden-size", "64",
               "--num-attention-heads", "4", "--seq-length", "32", "--vocab-size", "512"});
  EXPECT_EQ(simulated.at("cluster"), "this-machine");
  EXPECT_GT(simulated.at("seconds"), 0);
  EXPECT_THAT(refused(profile_command({"--cluster", file, "--output", file})), HasSubstr("--output"));
}

}  // namespace
}  // namespace teratron::testing

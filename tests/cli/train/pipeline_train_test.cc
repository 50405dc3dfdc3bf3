// Pipelines from the command line, on ranks that are threads and on processes: training in slices, the trace,
// going on under another layout, evaluation and generation, and what is told where they cannot be.

#include <map>
#include <optional>

#include "cli/tiny_training.h"
#include "comm/process/launched_job.h"

namespace teratron::testing {
namespace {

class PipelineTrain : public TrainingCommands<> {
 protected:
  // Updates in all, of micro-batches of one sequence.
  Words train(const char* iterations, const Words& more) const {
    return training_.command(with(
        {"--train-iters", iterations, "--lr-decay-iters", "12", "--micro-batch-size", "1", "--global-batch-size", "4"},
        more));
  }
  static std::string succeed(const Words& words, std::optional<LaunchedBy> launcher = {}) {
    const Outcome outcome = launcher
                                ? launch(*launcher, 2, with({TERATRON_BINARY}, words))->wait(std::chrono::seconds(120))
                                : run_teratron(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    return outcome.output + outcome.errors;
  }
  std::vector<double> losses(const std::string& run) const { return TinyTraining::losses(path(run)); }
};

const Words kPipeline = {"--pp", "2", "--token-slices", "12,9,11"};

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5 * expected[i]) << i;
}

// By rank: its name, and how often each thing happened.
struct TracedRank {
  std::string name;
  std::map<std::string, int> events;
};

std::map<int, TracedRank> ranks_in(const std::string& trace, int& last_iteration) {
  std::map<int, TracedRank> ranks;
  std::map<int, double> ends;
  const Json file = Json::parse(read_file(trace));
  for (const Json& event : file.at("traceEvents")) {
    TracedRank& rank = ranks[event.at("pid")];
    if (event.at("name") == "process_name") rank.name = event.at("args").at("name");
    if (event.at("ph") != "X") continue;
    ++rank.events[event.at("name")];
    const double start = event.at("ts"), length = event.at("dur");
    EXPECT_GE(start, ends[event.at("pid")] - 0.002) << "a rank does one thing at a time";
    ends[event.at("pid")] = start + length;
    last_iteration = event.at("args").at("iteration");
    if (event.at("name") == "forward") {
      EXPECT_LT(event.at("args").at("micro-batch"), 4);
      EXPECT_LT(event.at("args").at("slice"), 3);
      EXPECT_EQ(event.at("args").at("chunk"), 0);
    }
  }
  return ranks;
}

void expect_whole_trace(const std::string& trace) {
  int last_iteration = 0;
  const std::map<int, TracedRank> ranks = ranks_in(trace, last_iteration);
  EXPECT_EQ(last_iteration, 12);
  ASSERT_EQ(ranks.size(), 2U);
  for (const auto& [rank, there] : ranks) {
    EXPECT_EQ(there.name, "stage " + std::to_string(rank) + ", tensor 0, data 0");
    EXPECT_EQ(there.events.at("forward"), 12 * 4 * 3);
    EXPECT_EQ(there.events.at("backward"), 12 * 4 * 3);
    EXPECT_EQ(there.events.at("gradient sums"), 12);
    EXPECT_GE(there.events.at("waiting to receive"), 12);
  }
}

TEST_F(PipelineTrain, TrainsInSlicesAsOneRankDoesAndGoesOnUnderAnyLayout) {
  const auto run = [&](const char* iterations, const std::string& save, const Words& layout, const Words& more = {}) {
    return succeed(train(iterations, with(with({"--save", path(save)}, layout), more)));
  };
  run("12", "alone", {});
  const std::string said = run("12", "pipeline", kPipeline, {"--trace", path("traces/trace.json")});
  EXPECT_THAT(said, AllOf(HasSubstr("2 ranks (tensor 1 x pipeline 2 x data 1)"),
                          HasSubstr("pipeline seq1f1b: 2 stages of 1,1 layers, 4 micro-batches in slices of 12,9,11"),
                          HasSubstr("bubbles are "), HasSubstr("stage 0   stage 1")));
  expect_near(losses("pipeline"), losses("alone"));
  expect_whole_trace(path("traces/trace.json"));

  // Exactly in the same layout, up to rounding in another.
  run("5", "stopped", kPipeline);
  std::filesystem::copy(path("stopped"), path("other"), std::filesystem::copy_options::recursive);
  run("12", "stopped", kPipeline, {"--load", path("stopped")});
  EXPECT_EQ(losses("stopped"), losses("pipeline"));
  run("12", "other", {"--tp", "2", "--dp", "2", "--use-distributed-optimizer"}, {"--load", path("other")});
  expect_near(losses("other"), losses("alone"));
  run("5", "first", {"--tp", "2"});
  run("12", "first", with(kPipeline, {"--defer-weight-gradients", "--schedule", "terapipe"}),
      {"--load", path("first")});
  expect_near(losses("first"), losses("alone"));
}

class PipelineOfProcesses : public PipelineTrain, public ::testing::WithParamInterface<LaunchedBy> {};

TEST_P(PipelineOfProcesses, GivesTheLossesAndTheTraceOfThreads) {
  if (const std::string reason = why_no(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  using Launcher = std::optional<LaunchedBy>;
  const auto run = [&](const char* iterations, const std::string& save, const Words& more, Launcher launcher) {
    succeed(train(iterations, with(with(kPipeline, {"--save", path(save)}), more)), launcher);
  };
  run("12", "threads", {}, std::nullopt);
  run("12", "processes", {"--trace", path("trace.json")}, GetParam());
  EXPECT_EQ(losses("processes"), losses("threads"));
  expect_whole_trace(path("trace.json"));

  run("6", "resumed", {}, GetParam());
  run("12", "resumed", {"--load", path("resumed")}, GetParam());
  EXPECT_EQ(losses("resumed"), losses("threads"));
  EXPECT_EQ(run_teratron({"checkpoint", "verify", path("resumed")}).exit_code, 0);
}

// Begun with the whole vocabulary at both ends.
TEST_P(PipelineOfProcesses, GivesTheLossesOfThreadsWithTheVocabularySharedOut) {
  if (const std::string reason = why_no(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  succeed(train("12", {"--save", path("alone")}));
  succeed(train("5", with(kPipeline, {"--save", path("threads")})));
  std::filesystem::copy(path("threads"), path("processes"), std::filesystem::copy_options::recursive);
  for (const auto& [save, launcher] :
       {std::pair{"threads", std::optional<LaunchedBy>()}, {"processes", std::optional(GetParam())}}) {
    const std::string folder = path(save);
    const Words words = with(kPipeline, {"--save", folder, "--load", folder, "--vocabulary-parallel"});
    EXPECT_THAT(succeed(train("12", words), launcher), HasSubstr("with the vocabulary shared out"));
  }
  EXPECT_EQ(losses("processes"), losses("threads"));
  expect_near(losses("processes"), losses("alone"));
  EXPECT_EQ(run_teratron({"checkpoint", "verify", path("processes")}).exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(Mpirun, PipelineOfProcesses, ::testing::Values(LaunchedBy::kMpirun));

TEST_F(PipelineTrain, EvaluationAndGenerationAreThoseOfOneRank) {
  succeed(train("6", {"--save", path("run")}));
  const Words evaluation = {"eval", "loss", "--load", path("run"), "--data-path", path("data"), "--json", "-"};
  const Words wikitext = {"eval", "wikitext103", "--load", path("run"), "--data", path("corpus.txt"), "--json", "-"};
  const Words text = {
      "generate", "--load", path("run"), "--prompt", "the rank", "--max-new-tokens", "40", "--ignore-end-of-text",
      "--seed",   "3"};
  const auto loss = [](const Words& words) {
    const Outcome outcome = must(words);
    return Json::parse(outcome.output).at("loss").get<double>();
  };
  const std::string alone = run_teratron(text).output;
  EXPECT_THAT(alone, HasSubstr("the rank"));
  for (const Words& layout : {Words{"--pp", "2"}, Words{"--pp", "2", "--tp", "2"}}) {
    EXPECT_NEAR(loss(with(evaluation, layout)), loss(evaluation), 1e-5 * loss(evaluation));
    EXPECT_NEAR(loss(with(wikitext, layout)), loss(wikitext), 1e-5 * loss(wikitext));
    EXPECT_EQ(run_teratron(with(text, layout)).output, alone) << "once, and the same";
  }
  EXPECT_NEAR(loss(with(evaluation, {"--pp", "2", "--dp", "2"})), loss(evaluation), 1e-5 * loss(evaluation));
  for (const Words& words : {evaluation, wikitext, text}) {
    const std::string errors = refused(with(words, {"--pp", "3"}));
    EXPECT_THAT(errors, AllOf(HasSubstr("--pipeline-model-parallel-size is 3, but it has 2 layers"),
                              HasSubstr("the most that works is 2")));
    EXPECT_EQ(errors.find("error: "), errors.rfind("error: ")) << "once, not once a rank";
  }
}

TEST_F(PipelineTrain, RefusesImpossiblePipelinesOnceBeforeTheStart) {
  const auto errors = [&](const Words& words) {
    std::string text = refused(train("2", with({"--save", path("never")}, words)));
    EXPECT_EQ(text.find("error: "), text.rfind("error: ")) << text;
    EXPECT_FALSE(std::filesystem::exists(path("never")));
    return text;
  };
  EXPECT_THAT(errors({"--pp", "2", "--token-slices", "12,9", "--schedule", "gpipe", "--pipeline-layout", "1,2"}),
              AllOf(HasSubstr("3 faults"), HasSubstr("11 fewer than --seq-length 32"),
                    HasSubstr("choose --schedule terapipe or seq1f1b"), HasSubstr("adds up to 3 layers")));
  EXPECT_THAT(
      errors({"--pp", "2", "--token-slices", "auto", "--profile", TERATRON_SOURCE_DIR "/docs/figures/profile.json"}),
      AllOf(HasSubstr("measured for something else"), HasSubstr("hidden_size"), HasSubstr("here 64")));
}

}  // namespace
}  // namespace teratron::testing

// teratron simulate, as a user runs it.
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "cli/binary.h"

namespace teratron::testing {
namespace {

using ::testing::Contains;

const std::string kProfile = TERATRON_SOURCE_DIR "/docs/figures/profile.json";

Json simulated(const Words& arguments) { return json_of(with({"simulate"}, arguments)); }

TEST(Simulate, EveryScheduleTakesTheTimeAndMemoryOfItsClosedForm) {
  const std::vector<Words> schedules = {{"--schedule", "gpipe"},
                                        {"--schedule", "1f1b"},
                                        {"--schedule", "interleaved", "--virtual-stages", "2"},
                                        {"--schedule", "terapipe", "--slices", "4"},
                                        {"--schedule", "seq1f1b", "--slices", "uniform:4"},
                                        {"--schedule", "seq1f1b-i", "--slices", "4", "--virtual-stages", "2"}};
  for (Words arguments : schedules) {
    arguments.insert(arguments.end(), {"--forward-ms", "3", "--backward-ms", "5"});
    const Json json = simulated(arguments);
    EXPECT_NEAR(json.at("iteration_ms"), json.at("closed_form").at("iteration_ms"), 1e-9) << arguments[1];
    EXPECT_DOUBLE_EQ(json.at("peak_activations").at(0).at("micro_batches"),
                     json.at("closed_form").at("peak_micro_batches"))
        << arguments[1];
  }
}

TEST(Simulate, DeferredWeightGradientsShortenAnIterationInTheSameMemory) {
  const Words arguments = {"--schedule", "1f1b", "--stages", "4", "--micro-batches", "8"};
  Words deferred = arguments;
  deferred.emplace_back("--defer-weight-gradients");
  const Json before = simulated(arguments), after = simulated(deferred);
  EXPECT_LT(after.at("iteration_ms"), before.at("iteration_ms"));
  EXPECT_EQ(after.at("peak_activations").at(0).at("slices"), before.at("peak_activations").at(0).at("slices"));
}

TEST(Simulate, SchedulesInAVTakeLessMemoryAndHaveNoClosedForm) {
  double before = 0;
  for (const char* schedule : {"v-min", "v-half", "v-zb"}) {
    const Json json = simulated({"--schedule", schedule, "--virtual-stages", "2", "--stages", "8", "--micro-batches",
                                 "32", "--defer-weight-gradients"});
    EXPECT_TRUE(json.at("closed_form").is_null());
    const double most = json.at("peak_activations").at(0).at("micro_batches");
    EXPECT_GT(most, before) << schedule;
    EXPECT_LE(most, 8);
    before = most;
  }
}

TEST(Simulate, AutoSlicesAddUpAndBeatEveryEvenCut) {
  const auto cut = [](const std::string& schedule, const std::string& slices) {
    return simulated({"--schedule", schedule, "--micro-batches", "1", "--profile", kProfile, "--slices", slices});
  };
  for (const char* schedule : {"terapipe", "seq1f1b"}) {
    const Json best = cut(schedule, "auto");
    const std::vector<std::int64_t> lengths = best.at("slice_tokens");
    EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), 2048);
    for (int slices = 1; slices <= 16; slices *= 2) {
      EXPECT_LE(best.at("iteration_ms"), cut(schedule, std::to_string(slices)).at("iteration_ms"))
          << schedule << " " << slices;
    }
  }
}

TEST(Simulate, AutoSlicesOfSeq1F1BAreNoSlowerThanTeraPipesInItsOrder) {
  for (const char* micro_batches : {"1", "2", "8"}) {
    const auto cut = [&](const std::string& schedule, const std::string& slices) {
      return simulated(
          {"--schedule", schedule, "--micro-batches", micro_batches, "--profile", kProfile, "--slices", slices});
    };
    const std::vector<int> lengths = cut("terapipe", "auto").at("slice_tokens");
    EXPECT_LE(cut("seq1f1b", "auto").at("iteration_ms"),
              cut("seq1f1b", fmt::format("{}", fmt::join(lengths, ","))).at("iteration_ms"));
  }
}

TEST(Simulate, DrawsATimelineForPeopleAndAPicture) {
  const TemporaryFolder folder;
  const std::string svg = (folder.path() / "timeline.svg").string();
  const Outcome outcome = must({"simulate", "--stages", "2", "--micro-batches", "2", "--svg", svg});
  EXPECT_THAT(outcome.output, AllOf(HasSubstr("iteration, ms"), HasSubstr("stage 1 "), HasSubstr(svg)));
  EXPECT_THAT(read_file(svg),
              AllOf(HasSubstr("<svg"), HasSubstr("1f1b: 2 stages, 2 micro-batches"), HasSubstr("</svg>")));
}

TEST(Simulate, OneResultGoesToStandardOutput) {
  const Outcome outcome = must({"simulate", "--trace", "-"});
  EXPECT_TRUE(Json::parse(outcome.output).contains("traceEvents"));
  EXPECT_THAT(outcome.errors, HasSubstr("iteration, ms"));
  EXPECT_THAT(refused({"simulate", "--trace", "-", "--json", "-"}), HasSubstr("--trace and --json both"));
  EXPECT_THAT(refused({"simulate", "--trace", "-", "--svg", "-"}), HasSubstr("--svg and --trace both"));
}

TEST(Simulate, BadInputIsToldAtOnceWithWhatToDo) {
  const auto expect_fault = [](const Words& arguments, const std::string& message) {
    const Outcome outcome = run_teratron(with({"simulate"}, arguments));
    EXPECT_EQ(outcome.exit_code, 2) << message;
    EXPECT_THAT(outcome.errors, HasSubstr(message));
    EXPECT_THAT(outcome.output, Not(HasSubstr("iteration")));
  };
  expect_fault({"--schedule", "interleaved", "--micro-batches", "6"}, "nearest are: 4 and 8");
  expect_fault({"--schedule", "gpipe", "--slices", "4"}, "choose terapipe or seq1f1b");
  expect_fault({"--virtual-stages", "2"}, "choose interleaved");
  expect_fault({"--schedule", "v-zb"}, "two cells a stage; give 2");
  expect_fault({"--stages", "0"}, "--stages is 0");
  expect_fault({"--forward-ms", "0"}, "--forward-ms is 0");
  expect_fault({"--backward-ms", "nan"}, "--backward-ms");
  expect_fault({"--transfer-ms", "-1"}, "--transfer-ms is -1");
  expect_fault({"--schedule", "terapipe", "--slices", "4,"}, "--slices is '4,'");
  expect_fault({"--schedule", "terapipe", "--slices", "uniform:0"}, "--slices is 'uniform:0'");
  expect_fault({"--schedule", "terapipe", "--slices", "auto"}, "give --profile FILE");
  expect_fault({"--slices", "auto", "--profile", kProfile}, "choose terapipe or seq1f1b");
  expect_fault({"--schedule", "terapipe", "--slices", "1000,1000", "--profile", kProfile}, "add up to 2000 tokens");
  expect_fault({"--profile", kProfile, "--seq-length", "4096"}, "measured up to 2048 tokens");
  expect_fault({"--profile", "/nowhere.json"}, "/nowhere.json");
  expect_fault({"--stages", "9999", "--micro-batches", "999999"}, "actions");
  expect_fault({"--schedule", "terapipe", "--slices", "16000000"}, "--slices");
  expect_fault({"--schedule", "terapipe", "--slices", "2x512,512+1x1024", "--micro-batches", "5"},
               "has 2 micro-batches");
  expect_fault({"--profile", kProfile, "--forward-ms", "1"}, "leave out --forward-ms");
  expect_fault({"--cluster", "dgx-a100", "--backward-ms", "1"}, "leave out --forward-ms and --backward-ms");
  expect_fault({"--schedule", "fast"}, "gpipe");
  expect_fault(
      {"--global-batch-size", "64"},
      "--global-batch-size is --micro-batches here, times --micro-batch-size and --dp; give --micro-batches M");
}

TEST(Simulate, FlagsOfAModelOnAClusterNeedTheCluster) {
  const auto fault = [](const std::string& words) { return refused(with({"simulate"}, words_of(words))); };
  const std::string all = fault("--model 8.3B --tp 8 --dp 2 --stages 4 --data-parallel-sharding weights");
  EXPECT_THAT(all, HasSubstr("are of a model on a cluster; give --cluster NAME, or leave them out"));
  for (const char* flag : {"--model", "--tensor-model-parallel-size", "--data-parallel-size"}) {
    EXPECT_THAT(all, HasSubstr(flag));
  }
  EXPECT_THAT(all, Not(HasSubstr("--stages")));
  for (const char* words : {"--recompute-granularity full", "--pipeline-layout 1,1,1,1", "--bf16"}) {
    EXPECT_THAT(fault(words), HasSubstr("is of a model on a cluster; give --cluster NAME, or leave it out")) << words;
  }
}

const Words kOnCluster =
    words_of("--cluster dgx-a100 --stages 2 --tp 8 --dp 2 --micro-batches 4 --micro-batch-size 1 --model 1.2B");

TEST(Simulate, FaultsOnAClusterNameFlagsOfThisCommand) {
  EXPECT_THAT(refused(with({"simulate"}, with(kOnCluster, {"--slices", "512,500"}))),
              AllOf(HasSubstr("--slices 512,500 adds up to 1012 tokens"), Not(HasSubstr("--token-slices"))));
  EXPECT_THAT(refused({"simulate", "--cluster", "dgx-a100", "--model", "355M", "--stages", "25"}),
              AllOf(HasSubstr("--stages is 25"), Not(HasSubstr("--pipeline-model-parallel"))));
  for (const auto& [size, micro_batches, says] :
       {std::tuple{"9223372036854775807", "4", "--micro-batch-size is 9223"},
        {"1000000", "4000", "--micro-batch-size 1000000 x --micro-batches"}}) {
    EXPECT_THAT(refused({"simulate", "--cluster", "dgx-a100", "--model", "355M", "--micro-batch-size", size,
                         "--micro-batches", micro_batches}),
                AllOf(HasSubstr(says), Not(HasSubstr("--global-batch-size"))));
  }
}

TEST(Simulate, OnAClusterStagesLinksAndMemoryAreTold) {
  const Json json = simulated(kOnCluster);
  EXPECT_EQ(json.at("ranks"), 32);
  ASSERT_EQ(json.at("stage_use").size(), 2U);
  for (const Json& stage : json.at("stage_use")) {
    EXPECT_GT(stage.at("busy_seconds"), 0);
    EXPECT_LT(stage.at("busy_seconds"), json.at("pipeline_seconds"));
    EXPECT_GT(stage.at("sum_seconds"), 0);
    EXPECT_GT(stage.at("memory_bytes"), 1e8);
  }
  EXPECT_LT(json.at("pipeline_seconds"), json.at("seconds"));
  EXPECT_GT(json.at("link_use").size(), 0U);
  const double tokens = 4 * 2 * 1024;
  EXPECT_NEAR(json.at("tokens_per_second"), tokens / json.at("seconds").get<double>(), 1e-6 * tokens);
}

TEST(Simulate, SlicesShortenAStepOnAClusterAndRecomputationLengthensIt) {
  const Words one = words_of(
      "--cluster dgx-h100 --stages 8 --micro-batches 1 --micro-batch-size 4 --model 8.3B --seq-length 2048 "
      "--tp 8 --schedule terapipe");
  const double whole = simulated(one).at("seconds");
  EXPECT_LT(simulated(with(one, {"--slices", "4"})).at("seconds"), whole);
  EXPECT_GT(simulated(with(one, {"--recompute-granularity", "full"})).at("seconds"), whole);
}

TEST(Simulate, OnAClusterStagesMakeAgainWhatTheirElementOfTheListSays) {
  const Words pipeline = words_of(
      "--cluster dgx-h100 --model 1.2B --stages 4 --micro-batch-size 2 --micro-batches 8 --slices 4 --schedule "
      "seq1f1b --seq-length 2048");
  const auto of = [&](const char* recompute) {
    return simulated(with(pipeline, {"--recompute-granularity", recompute}));
  };
  const Json none = of("none"), full = of("full"), some = of("full,full:4@2,selective,none");
  EXPECT_LT(none.at("seconds"), some.at("seconds"));
  EXPECT_LT(some.at("seconds"), full.at("seconds"));
  const auto of_stage = [](const Json& json, const char* name, std::size_t stage) -> double {
    return json.at("stage_use").at(stage).at(name);
  };
  for (const char* name : {"busy_seconds", "memory_bytes"}) {
    EXPECT_NEAR(of_stage(some, name, 0), of_stage(full, name, 0), 1e-9) << name;
    EXPECT_NEAR(of_stage(some, name, 3), of_stage(none, name, 3), 1e-9) << name;
  }
  for (const std::size_t stage : {1, 2}) {
    EXPECT_GT(of_stage(some, "busy_seconds", stage), of_stage(none, "busy_seconds", stage));
    EXPECT_LT(of_stage(some, "busy_seconds", stage), of_stage(full, "busy_seconds", stage));
    EXPECT_LT(of_stage(some, "memory_bytes", stage), of_stage(none, "memory_bytes", stage));
    EXPECT_GT(of_stage(some, "memory_bytes", stage), of_stage(full, "memory_bytes", stage));
  }
  EXPECT_EQ(some.at("stage_use").at(1).at("recompute"), "full:4@2");
}

TEST(Simulate, OnAClusterAVHasBothEndsOfTheModelOnItsFirstStage) {
  const auto busy = [](const char* schedule) -> std::vector<double> {
    const Words pipeline = words_of(
        "--cluster dgx-h100 --stages 4 --micro-batches 4 --slices 4 --model 1.2B --tp 2 --micro-batch-size 1 "
        "--pipeline-layout 6,5,5,5,5,5,5,4 --virtual-stages 2 --schedule");
    const Json json = simulated(with(pipeline, {schedule}));
    std::vector<double> seconds;
    for (const Json& stage : json.at("stage_use")) seconds.push_back(stage.at("busy_seconds"));
    return seconds;
  };
  const std::vector<double> in_turns = busy("seq1f1b-i"), in_a_v = busy("v-zb");
  EXPECT_GT(in_turns[0], in_turns[1]);  // 11 layers, 10 layers
  EXPECT_GT(in_a_v[0], in_a_v[1]);      // 10 layers and the head, 10 layers
}

TEST(Simulate, OnAClusterAHeavyHeadsStageGetsFewerLayersWhereTheyAreChosen) {
  const Words pipeline =
      words_of("--cluster dgx-h100 --model 124M --stages 2 --micro-batches 8 --micro-batch-size 4 --schedule 1f1b");
  const Json dealt = simulated(with(pipeline, {"--pipeline-layout", "auto"}));
  const std::vector<double> times = {simulated(pipeline).at("seconds"),
                                     simulated(with(pipeline, {"--pipeline-layout", "7,5"})).at("seconds"),
                                     simulated(with(pipeline, {"--pipeline-layout", "8,4"})).at("seconds"),
                                     simulated(with(pipeline, {"--pipeline-layout", "9,3"})).at("seconds")};
  EXPECT_LT(dealt.at("seconds"), 0.98 * times[0]);
  EXPECT_DOUBLE_EQ(dealt.at("seconds"), *std::ranges::min_element(times));
  const Words flags = dealt.at("choice").at("flags");
  EXPECT_THAT(flags, Contains("--pipeline-layout"));
  EXPECT_EQ(dealt.at("schedule"), "1f1b");
}

TEST(Simulate, ATraceHasEveryPassAndWhatGoesOnBesideThem) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "trace.json";
  simulated(with(kOnCluster, {"--trace", file}));
  std::map<std::string, int> counts;
  const Json trace = Json::parse(read_file(file));
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") ++counts[event.at("name")];
  }
  EXPECT_EQ(counts["forward"], 2 * 4);
  EXPECT_EQ(counts["backward"], 2 * 4);
  EXPECT_EQ(counts["activations"], 4);
  EXPECT_EQ(counts["gradients of activations"], 4);
  EXPECT_GT(counts["sum of gradients"], 2);
  EXPECT_EQ(counts["update"], 2);
  simulated({"--trace", file});  // of given costs
  EXPECT_THAT(read_file(file), HasSubstr("stage 3"));
}

TEST(Simulate, AClusterOfStandardInputIsReadOnceAndGetsMoreHosts) {
  constexpr const char* kHosts = R"(name = "hosts"
devices = 4
[device]
name = "card"
memory = 2.4e10
peak_16 = 1.4e14
peak_32 = 3.5e13
memory_bandwidth = 9e11
[[link]]
name = "board"
devices = 2
bandwidth = 2e10
shared = false
latency = 5e-6
[[link]]
name = "network"
devices = 4
bandwidth = 1e9
shared = true
latency = 3e-5
)";
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "hosts.toml").string();
  write_file_atomically(file, kHosts);
  Words words = {TERATRON_BINARY, "simulate", "--cluster", "-", "--json", "-"};
  words = with(words, words_of("--model tiny --stages 2 --dp 4 --micro-batch-size 1 --micro-batches 2"));
  const Outcome outcome = ChildProgram(words, {}, "", file).wait();
  ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(Json::parse(outcome.output).at("ranks"), 8);
}

TEST(Simulate, AClusterThatDoesNotFitIsToldInOneError) {
  const auto fails = [](const Words& arguments, const std::string& what) {
    EXPECT_THAT(refused(with({"simulate"}, arguments)), HasSubstr(what));
  };
  fails({"--cluster", "dgx-1"}, "dgx-a100");
  fails({"--cluster", "dgx-a100", "--profile", kProfile}, "give one");
  fails({"--cluster", "dgx-a100", "--slices", "auto", "--schedule", "terapipe"}, "--schedule auto chooses");
  fails({"--cluster", "dgx-a100", "--stages", "13"}, "13");
  const TemporaryFolder cache;
  const Outcome outcome = ChildProgram({TERATRON_BINARY, "simulate", "--cluster", "this-machine"},
                                       {"XDG_CACHE_HOME=" + cache.path().string()})
                              .wait();
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.errors, HasSubstr("teratron profile --cluster this-machine"));
}

}  // namespace
}  // namespace teratron::testing

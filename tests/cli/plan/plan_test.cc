// teratron plan, as a user runs it.

#include <algorithm>
#include <numeric>

#include "cli/tiny_training.h"

namespace teratron::testing {
namespace {

// Two processors beside each other, with 400 MB each.
constexpr const char* kProcessors = R"(name = "two processors"
devices = 2
[device]
name = "core"
memory = 4e8
peak_16 = 5e10
peak_32 = 5e10
memory_bandwidth = 1e10
[[link]]
name = "memory"
devices = 2
bandwidth = 5e9
shared = false
latency = 2e-6
)";

// The plan in a page of --html.
Json plan_in(const std::string& page) {
  const std::string text = read_file(page), mark = "id=\"plan\">";
  const std::size_t begin = text.find(mark) + mark.size();
  return Json::parse(text.substr(begin, text.find("</script>", begin) - begin));
}

Words plan(const Words& more) { return with({"plan", "--cluster", "dgx-a100", "--devices", "16"}, more); }

// A precision that the user gives changes nothing about the device that is meant.
TEST(Plan, ItsCommandIsForTheClustersDevicesWhateverThePrecision) {
  for (const Words& precision : {Words{}, Words{"--bf16"}, Words{"--fp16"}}) {
    const Json json = json_of(plan(with({"--model", "1.5B", "--global-batch", "64"}, precision)));
    EXPECT_THAT(json.at("command").get<std::string>(), HasSubstr("--backend cuda")) << precision.size();
  }
}

TEST(Plan, SaysThatTheCudaBackEndRefusesVolta) {
  const Words words = {"plan", "--cluster", "dgx-2h", "--devices", "16", "--model", "1.5B", "--global-batch", "64"};
  const Outcome outcome = must(words);
  EXPECT_THAT(outcome.output, HasSubstr("The CUDA back end refuses V100"));
}

TEST(Plan, TellsTheWallTheBestAndWhyOthersLose) {
  const Words words = plan({"--model", "8.3B", "--global-batch", "16", "--tokens", "1e9"});
  const Json json = json_of(words);
  EXPECT_EQ(json.at("memory_wall").at("bytes_of_parameter"), 16);
  EXPECT_GT(json.at("memory_wall").at("fewest_devices").at("bytes"), 0);
  const Json& best = json.at("best");
  ASSERT_GT(best.size(), 1U);
  for (std::size_t i = 1; i < best.size(); ++i) {
    EXPECT_GE(best[i].at("step_seconds"), best[i - 1].at("step_seconds"));
    const Json &layout = best[i].at("layout"), &first = best[0].at("layout");
    EXPECT_TRUE(layout.at("tp") != first.at("tp") || layout.at("pp") != first.at("pp"));
  }
  EXPECT_EQ(best[0].at("rank_bytes").size(), best[0].at("layout").at("pp"));
  // 6 N tokens and attention; days of as many tokens at that rate.
  const double parameters = json.at("memory_wall").at("parameters");
  EXPECT_GT(json.at("operations"), 6 * parameters * 1e9);
  EXPECT_LT(json.at("operations"), 7 * parameters * 1e9);
  const double rate = best[0].at("tokens_per_second");
  EXPECT_NEAR(json.at("days"), 1e9 / rate / 86400, 1e-9);
  EXPECT_THAT(succeed(words), AllOf(HasSubstr("bytes a parameter"), HasSubstr("slower by"), HasSubstr("bubble"),
                                    HasSubstr("teratron train --model 8.3B")));
}

// Megatron-LM, Table 2: an epoch of 174 GB of text, 68,507 updates of 512 sequences of 1024 tokens.
TEST(Plan, TellsTheUpdatesAndDaysOfAnEpoch) {
  const Words words = words_of(
      "plan --cluster dgx-2h --devices 64 --model 355M --global-batch 512 --seq 1024 --tp 1 --pp 1 --corpus-tokens "
      "35917398016");
  const Json json = json_of(words);
  EXPECT_EQ(json.at("epoch_updates"), 68507);
  const double step = json.at("best")[0].at("step_seconds");
  EXPECT_NEAR(json.at("epoch_days"), 68507 * step / 86400, 1e-6);
  EXPECT_THAT(succeed(words), HasSubstr("an epoch of 35.9 G tokens: 68,507 updates"));
}

TEST(Plan, APageHasTheStepsThatArePlannedOneByOne) {
  const TemporaryFolder folder;
  const std::string cluster = (folder.path() / "c.toml").string(), page = (folder.path() / "p.html").string();
  write_file_atomically(cluster, kProcessors);
  const Words words = {"plan", "--model", "tiny", "--cluster", cluster, "--global-batch-size", "4", "--pp", "1"};
  const Json all = json_of(with(words, {"--html", page}));
  EXPECT_EQ(all.at("steps"), 12) << "two models by 1 and 2 devices, of a host of 2, by 2, 4 and 8 sequences";
  const Json plan = plan_in(page);
  const Json& first = plan.at("steps").at(plan.at("first").get<std::size_t>());
  EXPECT_EQ(first.at("devices"), 2);
  EXPECT_EQ(first.at("sequences"), 4);
  const Json one = json_of(words).at("best").at(0);
  EXPECT_EQ(first.at("seconds"), one.at("step_seconds"));
  EXPECT_EQ(first.at("tokens_per_second"), one.at("tokens_per_second"));
  EXPECT_EQ(first.at("memory"), std::ranges::max(one.at("rank_bytes").get<std::vector<std::int64_t>>()));
  for (const Json& step : plan.at("steps")) {
    const auto kinds = step.at("kinds").get<std::vector<std::int64_t>>();
    ASSERT_EQ(kinds.size(), plan.at("kinds").size());
    EXPECT_EQ(std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0}), step.at("memory"));
    EXPECT_GE(std::ranges::min(kinds), 0);
    EXPECT_EQ(step.at("timeline").is_null(), !step.at("fits").get<bool>());
  }
  const std::string row = plan.at("rows").at(first.at("timeline").at("rows").get<std::size_t>()).at(0);
  EXPECT_THAT(row, HasSubstr("F"));
  EXPECT_EQ(plan.at("clusters").size(), 1U) << "it is no preset";
  ASSERT_EQ(plan.at("models").size(), 2U) << "no preset of the family is smaller";
  EXPECT_THAT(plan.at("models").at(0).get<std::string>(), HasSubstr("tiny"));
  EXPECT_THAT(plan.at("models").at(1).get<std::string>(), HasSubstr("124M"));
  const Json& larger = plan.at("steps").at(6 + plan.at("first").get<std::size_t>());
  EXPECT_EQ(larger.at("model"), 1);
  Words other = words;
  other[2] = "124M";
  EXPECT_EQ(larger.at("fits"), false);
  EXPECT_THAT(refused(other), HasSubstr(larger.at("layout").get<std::string>()));
  EXPECT_THAT(refused(with(words, {"--html", cluster})), HasSubstr("is no page of teratron"));
  for (const Words& more : {Words{"--explain"}, Words{"--runners-up", "5"}, Words{"--corpus-tokens", "1e9"},
                            Words{"--budget", "5", "--price", "2.5"}}) {
    EXPECT_THAT(refused(with(with(words, {"--html", page}), more)), HasSubstr("has no room for")) << more[0];
  }
}

TEST(Plan, APageOfAPresetHasTheClustersThatOneWouldCompareItWith) {
  const TemporaryFolder folder;
  const std::string page = (folder.path() / "p.html").string();
  const Words words = words_of("plan --model 124M --cluster h200 --global-batch 8 --devices 1 --tp 1 --pp 1");
  succeed(with(words, {"--html", page}));
  const Json plan = plan_in(page);
  std::vector<std::string> names;
  for (const Json& cluster : plan.at("clusters")) names.push_back(cluster.at("name"));
  EXPECT_THAT(names, ::testing::ElementsAre("h200", "dgx-a100", "dgx-h100", "dgx-b200"));
  for (const Json& step : plan.at("steps")) {
    if (step.at("cluster") != 3 || step.at("model") != 1 || step.at("devices") != 1 || step.at("sequences") != 8)
      continue;
    Words other = words;
    other[4] = "dgx-b200";
    EXPECT_EQ(json_of(other).at("best").at(0).at("step_seconds"), step.at("seconds"));
  }
}

TEST(Plan, APageLeavesOutClustersThatCannotHaveSoManyDevices) {
  const TemporaryFolder folder;
  const std::string page = (folder.path() / "p.html").string();
  succeed(with(words_of("plan --model tiny --cluster dgx-2h --devices 12 --global-batch 96 --tp 1 --pp 1"),
               {"--html", page}));
  const Json plan = plan_in(page);
  ASSERT_EQ(plan.at("clusters").size(), 1U) << "the others have hosts of 8";
  EXPECT_EQ(plan.at("clusters").at(0).at("name"), "dgx-2h");
}

TEST(Plan, APageReadsAClusterOfStandardInputOnce) {
  const TemporaryFolder folder;
  const std::string cluster = (folder.path() / "c.toml").string(), page = (folder.path() / "p.html").string();
  write_file_atomically(cluster, kProcessors);
  Words words = {TERATRON_BINARY, "plan", "--cluster", "-", "--html", page};
  words = with(words, words_of("--model tiny --global-batch 4 --tp 1 --pp 1"));
  const Outcome outcome = ChildProgram(words, {}, "", cluster).wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(plan_in(page).at("clusters").at(0).at("name"), "two processors");
}

TEST(Plan, AScheduleThatIsTooLongForOneCopyIsNoFaultWhereCopiesAreSearchedFor) {
  const auto faults = [](const Words& more) {  // of a cluster that is unknown: nothing is planned
    return refused(with(words_of("plan --cluster dgx-9 --model gpt3-175B --tp 8 --pp 16 --virtual-stages 6 "
                                 "--global-batch-size 16384"),
                        more));
  };
  EXPECT_THAT(faults({"--devices", "3072"}), AllOf(HasSubstr("dgx-9"), Not(HasSubstr("actions"))));
  EXPECT_THAT(faults({}), AllOf(HasSubstr("dgx-9"), Not(HasSubstr("actions"))));
  EXPECT_THAT(faults({"--devices", "128"}), HasSubstr("makes a schedule of 4718592 actions"));
  EXPECT_THAT(faults({"--dp", "1"}), HasSubstr("makes a schedule of 4718592 actions"));
}

TEST(Plan, TellsWhatTrainingCostsAndWhatABudgetPaysFor) {
  const Words words = plan({"--model", "8.3B", "--global-batch", "64", "--tp", "8", "--pp", "1", "--target-tokens",
                            "1e9", "--price", "2.5", "--budget", "1000"});
  const Json json = json_of(words), &bill = json.at("bill");
  const double device_hours = json.at("days").get<double>() * 24 * 16;
  EXPECT_NEAR(bill.at("dollars"), 2.5 * device_hours, 1e-6 * device_hours);
  EXPECT_NEAR(bill.at("megawatt_hours"), device_hours * 400e-6, 1e-9 * device_hours);  // an A100 has 400 W
  EXPECT_NEAR(bill.at("budget_days"), 1000 / 2.5 / 24 / 16, 1e-12);
  EXPECT_THAT(succeed(words), AllOf(HasSubstr("1,000 dollars last 1.04 days"), HasSubstr("for the above")));
  EXPECT_THAT(refused(plan({"--model", "124M", "--global-batch", "16", "--budget", "5"})), HasSubstr("--price 2.5"));
}

TEST(Plan, AmountsOfAnySizeAreSaidAsTheyAre) {
  const auto costs = [](const char* tokens, const char* price, const char* budget) {
    return plan({"--model", "124M", "--global-batch", "16", "--tp", "1", "--pp", "1", "--tokens", tokens, "--price",
                 price, "--budget", budget});
  };
  EXPECT_THAT(succeed(costs("1", "2.5", "0.0001")),
              AllOf(HasSubstr(": 1 update,"), HasSubstr("0.0001 dollars last"), Not(HasSubstr(" 0 device-hours"))));
  EXPECT_THAT(succeed(costs("1e9", "2.5", "3.09")), HasSubstr("3.09 dollars last"));
  EXPECT_THAT(succeed(costs("1e18", "1e15", "1e15")), AllOf(HasSubstr("e+"), Not(HasSubstr("-9,2"))));
  EXPECT_THAT(refused(costs("1e30", "1", "1")), HasSubstr("--tokens is 1e+30; it must be a number of tokens"));
  EXPECT_THAT(refused(costs("1", "1e300", "1")), HasSubstr("--price is 1e+300; it must be a number of dollars"));
  EXPECT_THAT(refused(costs("nan", "1", "1")), HasSubstr("--tokens"));
}

TEST(Plan, SharingWeightsOutTakesLessMemoryAndMoreTime) {
  const auto best = [](const char* sharding) {
    return json_of(plan({"--model", "1.5B", "--global-batch", "64", "--tp", "1", "--pp", "1", "--micro-batch-size", "1",
                         "--recompute-granularity", "none", "--use-distributed-optimizer", "--data-parallel-sharding",
                         sharding}))
        .at("best")[0];
  };
  const Json optimizer = best("none"), gradients = best("gradients"), weights = best("weights");
  EXPECT_LT(gradients.at("rank_bytes")[0], optimizer.at("rank_bytes")[0]);
  EXPECT_LT(weights.at("rank_bytes")[0], gradients.at("rank_bytes")[0]);
  EXPECT_GT(weights.at("step_seconds"), gradients.at("step_seconds"));
}

TEST(Plan, ExplainsTheBest) {
  const Words words = plan({"--model", "8.3B", "--global-batch", "64", "--tp", "8"});
  EXPECT_THAT(succeed(with(words, {"--explain"})),
              AllOf(HasSubstr("Groups of ranks"), HasSubstr("3072 x 1152"), HasSubstr("within hosts")));
  EXPECT_THAT(succeed(words), Not(HasSubstr("Groups of ranks")));
}

TEST(Plan, KeepsWhatIsGiven) {
  const Json json = json_of(plan({"--model", "1.2B", "--global-batch", "16", "--pp", "4", "--schedule", "terapipe",
                                  "--recompute-granularity", "full", "--sequence-parallel=false"}));
  for (const Json& one : json.at("best")) {
    EXPECT_EQ(one.at("layout").at("pp"), 4);
    EXPECT_EQ(one.at("layout").at("schedule"), "terapipe");
    EXPECT_EQ(one.at("layout").at("recompute"), "full");
    EXPECT_EQ(one.at("layout").at("sequence_parallel"), false);
  }
}

TEST(Plan, ItsCommandTrains) {
  const TinyTraining training;
  const std::string roomy = training.path("cluster.toml"), small = training.path("small.toml");
  const std::string data = training.path("data"), processors = kProcessors, memory = "memory = 4e8";
  write_file_atomically(roomy, processors);
  // The largest batch of little memory is trained in little time.
  write_file_atomically(small, std::string(processors).replace(processors.find(memory), memory.size(), "memory = 2e7"));
  const Words given = {"--global-batch", "4"};
  for (const Words& more :
       {given, with(given, {"--pp", "2", "--schedule", "seq1f1b"}),
        with(given, {"--pp", "2", "--pipeline-layout", "auto", "--vocabulary-parallel"}),
        with(given, {"--pp", "2", "--schedule", "terapipe", "--token-slices", "joint"}), Words{"--largest-batch"},
        Words{"--largest-batch", "--pp", "2", "--schedule", "terapipe", "--token-slices", "uniform:2"}}) {
    const Words model = with(words_of("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq 64 --tokens 1024"),
                             {"--data-path", data});
    const std::string& cluster = more.front() == "--largest-batch" ? small : roomy;
    const Json json =
        json_of(with(with({"plan", "--cluster", cluster, "--tokenizer", training.path("tokenizer")}, model), more));
    EXPECT_EQ(json.at("devices"), 2);
    const Outcome trained = run_teratron(with({"train"}, json.at("words").get<Words>()));
    EXPECT_EQ(trained.exit_code, 0) << json.at("command") << "\n" << trained.errors;
    const std::int64_t batch = json.at("best")[0].at("global_batch_size");
    const std::int64_t updates = (16 + batch - 1) / batch;  // of 16 sequences
    EXPECT_THAT(trained.output + trained.errors, HasSubstr(fmt::format("iteration {0}/{0}", updates)));
  }
}

TEST(Plan, OffersChangesWhereNothingFits) {
  EXPECT_THAT(refused(plan({"--model", "gpt3-175B", "--global-batch", "64"})),
              AllOf(HasSubstr("does not fit"), HasSubstr("GiB more than the 78.1 GiB"), HasSubstr("take 36 devices")));
  EXPECT_THAT(refused(plan({"--model", "gpt3-13B", "--global-batch", "16", "--tp", "1", "--pp", "1"})),
              AllOf(HasSubstr("does not fit"), HasSubstr("leave out the flags of the layout")));
}

TEST(Plan, FaultsAreListedAtOnce) {
  EXPECT_THAT(refused(plan({"--model", "124M", "--global-batch", "4", "--largest-batch"})), HasSubstr("give one"));
  EXPECT_THAT(refused(plan({"--model", "124M", "--largest-batch", "--schedule", "1f1b"})), HasSubstr("any batch fits"));
  EXPECT_THAT(refused(plan({"--model", "124M", "--largest-batch", "--token-slices", "joint"})),
              HasSubstr("a batch of a given size"));
  EXPECT_THAT(refused({"plan", "--model", "124M"}), AllOf(HasSubstr("--cluster"), HasSubstr("--global-batch-size")));
  EXPECT_THAT(refused(plan({"--model", "124M", "--global-batch", "4", "--tp", "5", "--token-slices", "auto"})),
              HasSubstr("--token-slices is auto"));
  EXPECT_THAT(refused(plan({"--model", "124M", "--global-batch", "4", "--tp", "5", "--virtual-stages", "0"})),
              AllOf(HasSubstr("2 faults"), HasSubstr("sizes that work"), HasSubstr("--virtual-stages")));
  EXPECT_THAT(refused(plan({"--model", "123M", "--global-batch", "4"})), HasSubstr("no model preset '123M'"));
  EXPECT_THAT(refused(plan({"--model", "124M", "--global-batch", "4", "--dp", "8"})), HasSubstr("--global-batch-size"));
  EXPECT_THAT(refused(plan({"--model", "124M", "--global-batch", "8", "--tp", "4", "--pp", "6"})),
              HasSubstr("needs 24 ranks"));
  EXPECT_THAT(refused({"plan", "--model", "124M", "--global-batch", "4", "--cluster", "dgx-9"}), HasSubstr("dgx-9"));
  EXPECT_THAT(refused(plan({"--model", "bert-tiny", "--global-batch", "4", "--vocabulary-parallel"})),
              HasSubstr("--vocabulary-parallel is for models that continue text"));
  const Words small = plan({"--model", "124M", "--global-batch", "8"});
  EXPECT_THAT(refused(with(small, {"--pipeline-layout", "1,1"})), HasSubstr("--pipeline-layout 1,1 adds up to 2"));
  EXPECT_THAT(refused(with(small, {"--pipeline-layout", "x"})), HasSubstr("--pipeline-layout is 'x'"));
  EXPECT_THAT(refused(with(small, {"--frozen-weights", "q4_0"})), HasSubstr("--frozen-weights is for weights beside"));
  EXPECT_THAT(refused(with(small, {"--frozen-weights", "q4_0", "--lora-rank", "4"})), HasSubstr("are for CPUs"));
  EXPECT_THAT(refused(with(small, {"--sequence-parallel", "--devices", "1"})), HasSubstr("leave out flags of layouts"));
  EXPECT_THAT(refused({"plan", "--reproduce", "gpt"}), AllOf(HasSubstr("megatron"), HasSubstr("terapipe")));
}

TEST(Plan, ReproducesWhatThePapersMeasured) {
  for (const char* paper : {"megatron", "terapipe", "llama3", "seq1f1b", "zero-bubble"}) {
    const Json json = json_of({"plan", "--reproduce", paper});
    EXPECT_GE(json.at("cells").size(), 4U);
    EXPECT_TRUE(json.contains("scores") && json.contains("curves") && json.contains("fitted"));
  }
}

}  // namespace
}  // namespace teratron::testing

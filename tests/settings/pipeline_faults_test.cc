// Faults of a pipeline name the flag and valid values, all at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/reading.h"
#include "settings/step_options.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Words = std::vector<std::string>;

// Faults of a GPT-2 of 12 layers and sequences of 1024 tokens.
std::vector<std::string> faults_of(const Words& arguments) {
  StepSettings settings;
  FieldList fields = fields_of(settings);
  EXPECT_THAT(read_fields(fields, arguments), IsEmpty());
  return settings.faults().texts();
}

TEST(PipelineFaults, ThereAreNoneInWhatWorks) {
  for (const Words& words : std::vector<Words>{
           {"--pp", "3"},
           {"--pp", "12", "--schedule", "gpipe"},
           {"--pp", "5", "--pipeline-layout", "3,3,2,2,2"},
           {"--pp", "3", "--schedule", "interleaved", "--virtual-stages", "2", "--global-batch-size", "20"},
           {"--pp", "2", "--token-slices", "uniform:3"},
           {"--pp", "2", "--token-slices", "1023,1", "--schedule", "terapipe"},
           {"--pp", "2", "--token-slices", "auto"},
           {"--token-slices", "uniform:1024", "--defer-weight-gradients"},
           {"--pp", "2", "--tp", "4", "--sequence-parallel", "--token-slices", "uniform:3", "--micro-batch-size", "1"},
           {"--pp", "2", "--token-slices", "2x1000,24+1x1024", "--global-batch-size", "3"},
           {"--pp", "2", "--token-slices", "joint", "--global-batch-size", "7"},
           {"--pp", "2", "--dp", "2", "--token-slices", "2x1024+1x1024", "--schedule", "gpipe", "--global-batch-size",
            "5"},
           {"--pp", "2", "--schedule", "terapipe", "--global-batch-size", "12", "--pipeline-flushes", "3"},
           {"--pp", "4", "--schedule", "gpipe", "--vocabulary-parallel"},
           {"--pipeline-layout", "12"}}) {
    EXPECT_THAT(faults_of(words), IsEmpty()) << words[1];
  }
}

TEST(PipelineFaults, StagesAndLayersThatDoNotFitAreReportedWithWhatDoes) {
  const std::string stages = "--pipeline-model-parallel-size";
  EXPECT_THAT(faults_of({"--pp", "0"}), ElementsAre(stages + " is 0; it must be at least 1"));
  EXPECT_THAT(faults_of({"--pp", "13"}),
              ElementsAre(AllOf(HasSubstr(stages + " is 13"), HasSubstr("the most that works is 12"))));
  EXPECT_THAT(faults_of({"--pp", "5"}),
              ElementsAre(AllOf(HasSubstr("--num-layers 12"), HasSubstr("5 stages of " + stages),
                                HasSubstr("nearest that can: 10 and 15"), HasSubstr("--pipeline-layout 3,3,2,2,2"))));
  EXPECT_THAT(faults_of({"--pp", "4", "--schedule", "interleaved", "--virtual-stages", "2"}),
              ElementsAre(AllOf(HasSubstr("8 cells (2 of --virtual-stages on each of 4 stages"),
                                HasSubstr("nearest that can: 8 and 16"), HasSubstr("2,2,2,2,1,1,1,1"))));
  EXPECT_THAT(faults_of({"--pp", "4", "--schedule", "interleaved", "--virtual-stages", "4"}),
              ElementsAre(AllOf(HasSubstr("--virtual-stages is 4"), HasSubstr("16 cells"),
                                HasSubstr("the most that works is 3"))));
  EXPECT_THAT(faults_of({"--tp", "12", "--pp", "12", "--dp", "4000", "--global-batch-size", "4000"}),
              ElementsAre(AllOf(HasSubstr(stages + " 12"), HasSubstr("576000 ranks"), HasSubstr("65536 at most"))));
}

TEST(PipelineFaults, AVocabularyIsSharedOutOverStagesByModelsThatContinueText) {
  EXPECT_THAT(faults_of({"--vocabulary-parallel"}),
              ElementsAre(AllOf(HasSubstr("--vocabulary-parallel shares"), HasSubstr("there is one"))));
  EXPECT_THAT(faults_of({"--vocabulary-parallel", "--pp", "2", "--model-type", "bert"}),
              ElementsAre(HasSubstr("--vocabulary-parallel is for models that continue text")));
  EXPECT_THAT(faults_of({"--vocabulary-parallel", "--pp", "2", "--token-slices", "auto"}),
              ElementsAre(AllOf(HasSubstr("--token-slices is auto"), HasSubstr("uniform:4"))));
}

TEST(PipelineFaults, ALayoutIsRefusedWithOneThatWorks) {
  const auto faults = [](const char* layout) { return faults_of({"--pp", "2", "--pipeline-layout", layout}); };
  EXPECT_THAT(faults("5,7"), IsEmpty());
  EXPECT_THAT(faults("auto"), IsEmpty());
  EXPECT_THAT(faults_of({"--pp", "5", "--pipeline-layout", "auto"}), IsEmpty());  // of 12 layers
  EXPECT_THAT(faults("5,8"), ElementsAre(AllOf(HasSubstr("--pipeline-layout 5,8 adds up to 13 layers"),
                                               HasSubstr("12 of --num-layers"), HasSubstr("such as 6,6"))));
  EXPECT_THAT(faults("4,4,4"), ElementsAre(AllOf(HasSubstr("has 3 cells; 2 are needed"), HasSubstr("such as 6,6"))));
  EXPECT_THAT(faults("12,0"), ElementsAre(HasSubstr("gives cell 1 0 layers")));
  for (const char* wrong : {"five", "5;7", "5,", ",", "5 7", "5,7.0", "99999999999999999999,1"}) {
    EXPECT_THAT(faults(wrong), ElementsAre(AllOf(HasSubstr("--pipeline-layout is '"), HasSubstr("such as 6,6"))))
        << wrong;
  }
}

TEST(PipelineFaults, VirtualStagesBelongToInterleavedPipelines) {
  EXPECT_THAT(faults_of({"--pp", "2", "--virtual-stages", "2"}), IsEmpty());
  EXPECT_THAT(faults_of({"--pp", "2", "--virtual-stages", "2", "--schedule", "1f1b"}),
              ElementsAre(AllOf(HasSubstr("--virtual-stages is 2"), HasSubstr("schedule 1f1b"),
                                HasSubstr("choose --schedule interleaved"))));
  EXPECT_THAT(faults_of({"--schedule", "interleaved", "--virtual-stages", "3"}),
              ElementsAre(AllOf(HasSubstr("--virtual-stages is 3, but there is one stage"),
                                HasSubstr("--pipeline-model-parallel-size 2 or more"))));
}

TEST(PipelineFaults, SchedulesInAVHaveTwoCellsAStage) {
  for (const char* schedule : {"v-min", "v-half", "v-zb"}) {
    const auto faults = [&](const char* cells) {
      return faults_of({"--pp", "2", "--schedule", schedule, "--virtual-stages", cells, "--token-slices", "512,512"});
    };
    EXPECT_THAT(faults("2"), IsEmpty());
    EXPECT_THAT(faults("1"), ElementsAre(HasSubstr("two cells a stage; give 2, or choose --schedule terapipe")));
    EXPECT_THAT(faults("3"), ElementsAre(HasSubstr("two cells a stage; give 2, or choose --schedule seq1f1b-i")));
  }
}

TEST(PipelineFaults, SlicesAreReportedWithHowFarTheyAreOff) {
  const auto faults = [](const char* slices, Words more = {}) {
    more.insert(more.end(), {"--pp", "2", "--token-slices", slices});
    return faults_of(more);
  };
  EXPECT_THAT(faults("512,500"), ElementsAre(AllOf(HasSubstr("--token-slices 512,500 adds up to 1012 tokens"),
                                                   HasSubstr("12 fewer than --seq-length 1024"))));
  EXPECT_THAT(faults("512,513"), ElementsAre(HasSubstr("1 more than --seq-length 1024")));
  EXPECT_THAT(faults("uniform:1025"), ElementsAre(HasSubstr("the most that works is uniform:1024")));
  EXPECT_THAT(faults("4"), ElementsAre(HasSubstr("--token-slices is 4; give the lengths of all slices")));
  EXPECT_THAT(faults("512,"), ElementsAre(HasSubstr("--token-slices is '512,'")));
  for (const char* schedule : {"gpipe", "1f1b", "interleaved"}) {
    for (const char* slices : {"uniform:2", "auto", "1000,24"}) {
      EXPECT_THAT(faults(slices, {"--schedule", schedule}),
                  ElementsAre(AllOf(HasSubstr(std::string("--token-slices is ") + slices),
                                    HasSubstr("choose --schedule terapipe or seq1f1b"))))
          << schedule;
    }
  }
  const Words rows = {"--tp", "4", "--sequence-parallel", "--micro-batch-size", "1"};
  EXPECT_THAT(faults("510,514", rows),
              ElementsAre(AllOf(HasSubstr("a slice of 510 tokens"), HasSubstr("508 and 512"))));
  EXPECT_THAT(faults("uniform:257", rows), ElementsAre(HasSubstr("the most that works is uniform:256")));
  EXPECT_THAT(faults("uniform:2", {"--tp", "4", "--sequence-parallel"}),
              ElementsAre(AllOf(HasSubstr("--sequence-parallel with --token-slices"),
                                HasSubstr("--micro-batch-size is 4; give 1"))));
  EXPECT_THAT(faults("uniform:1024", {"--global-batch-size", "100000", "--micro-batch-size", "1"}),
              ElementsAre(HasSubstr("actions")));
}

TEST(PipelineFaults, SchedulesTooLongToHoldAreRefusedWithWhatShortensThem) {
  const Words words = {"--global-batch-size", "2000000000", "--micro-batch-size", "1"};
  const auto faults = [&](Words more) {
    more.insert(more.end(), words.begin(), words.end());
    return faults_of(more);
  };
  EXPECT_THAT(faults({}), ElementsAre("--global-batch-size 2000000000 in 2000000000 micro-batches on 1 cell makes a "
                                      "schedule of 6000000000 actions, and 4000000 are the most; use a smaller "
                                      "--global-batch-size or a larger --micro-batch-size"));
  EXPECT_THAT(faults({"--pp", "2", "--token-slices", "auto"}),
              ElementsAre(AllOf(HasSubstr("--global-batch-size 2000000000"), HasSubstr("on 2 cells"))));
  EXPECT_THAT(faults({"--pp", "2", "--token-slices", "uniform:2"}),
              ElementsAre(AllOf(HasSubstr("--token-slices uniform:2 in"), HasSubstr("use fewer slices or a larger"))));
}

TEST(PipelineFaults, MicroBatchesOfTheirOwnSlicesMakeUpTheBatch) {
  const auto faults = [](const char* slices, Words more = {}) {
    more.insert(more.end(), {"--pp", "2", "--global-batch-size", "6", "--token-slices", slices});
    return faults_of(more);
  };
  EXPECT_THAT(faults("4x512,512+2x1024"), IsEmpty());
  std::string cut = "512x64", large;  // the micro-batches that it says, whatever --micro-batch-size
  for (int i = 1; i < 16; ++i) cut += ",64";
  for (int i = 0; i < 16; ++i) large += (large.empty() ? "" : "+") + cut;
  EXPECT_THAT(faults_of({"--pp", "64", "--num-layers", "64", "--global-batch-size", "8192", "--micro-batch-size", "1",
                         "--token-slices", large}),
              IsEmpty());
  EXPECT_THAT(faults("4x512,512+2x1023"), ElementsAre(HasSubstr("1 fewer than --seq-length 1024")));
  EXPECT_THAT(faults("4x512,512+1x1024"),
              ElementsAre(AllOf(HasSubstr("is of 5 sequences, but an update has 6 on each copy of the model"),
                                HasSubstr("--global-batch-size 5"))));
  EXPECT_THAT(faults("2x1024+4x1024"), ElementsAre(HasSubstr("a micro-batch of 4 sequences after one of 2")));
  EXPECT_THAT(faults("4x512,512+2x1024", {"--schedule", "1f1b"}), ElementsAre(HasSubstr("terapipe or seq1f1b")));
  EXPECT_THAT(faults("joint", {"--tp", "4", "--sequence-parallel", "--micro-batch-size", "1"}),
              ElementsAre(HasSubstr("leaves no micro-batches to choose; leave it out")));
  EXPECT_THAT(faults("4x512,512+2x1024", {"--tp", "4", "--sequence-parallel"}),
              ElementsAre(HasSubstr("takes one sequence at a time, but --token-slices is 4x512,512+2x1024; give 1")));
}

TEST(PipelineFaults, FlushesAreOfSchedulesThatHoldAllMicroBatches) {
  const auto faults = [](const char* flushes, const char* schedule) {
    return faults_of({"--pp", "2", "--global-batch-size", "12", "--pipeline-flushes", flushes, "--schedule", schedule});
  };
  EXPECT_THAT(faults("0", "gpipe"), ElementsAre("--pipeline-flushes is 0; it must be at least 1"));
  EXPECT_THAT(faults("4", "gpipe"), ElementsAre(AllOf(HasSubstr("has 3 micro-batches"), HasSubstr("that works is 3"))));
  for (const char* schedule : {"1f1b", "seq1f1b"}) {
    EXPECT_THAT(faults("2", schedule), ElementsAre(HasSubstr("choose --schedule gpipe or terapipe")));
  }
}

TEST(LayoutFaults, KeepAndRecomputeActivationsTogether) {
  EXPECT_THAT(faults_of({"--packed-weights", "all"}), IsEmpty());
  EXPECT_THAT(faults_of({"--packed-weights", "all", "--backend", "cuda"}),
              ElementsAre(HasSubstr("--packed-weights all is for products on CPUs, and --backend is another")));
  EXPECT_THAT(faults_of({"--keep-activations", "all"}), IsEmpty());
  EXPECT_THAT(faults_of({"--keep-activations", "auto", "--recompute-granularity", "full"}), IsEmpty());
  for (const char* granularity : {"selective", "full", "full:3"}) {
    EXPECT_THAT(faults_of({"--keep-activations", "all", "--recompute-granularity", granularity}),
                ElementsAre(HasSubstr("--keep-activations all keeps what --recompute-granularity computes again")));
  }
}

TEST(LayoutFaults, RecomputationIsOfAllStagesOrOfEach) {
  const auto faults = [](const char* recompute, const Words& more = {}) {
    Words words = {"--pp", "3", "--recompute-granularity", recompute};
    words.insert(words.end(), more.begin(), more.end());
    return faults_of(words);
  };
  for (const char* list : {"none", "full", "selective:2", "full,selective:4,none", "full:12"}) {
    EXPECT_THAT(faults(list), IsEmpty()) << list;
  }
  EXPECT_THAT(faults("full@2,none,selective:1@3", {"--token-slices", "uniform:3"}), IsEmpty());
  for (const char* text :
       {"", "block", "full,", "full:0", "full:", "full:1x", "full@1:2", "none:2", "Full", "full,none none"}) {
    EXPECT_THAT(faults(text), ElementsAre(AllOf(HasSubstr("--recompute-granularity is '"),
                                                HasSubstr("it must be none, selective or full, or a list of them for "
                                                          "every stage, such as full,none,none"))))
        << text;
  }
  EXPECT_THAT(faults("full,none"),
              ElementsAre("--recompute-granularity full,none is of 2 stages, and the pipeline has 3 "
                          "(--pipeline-model-parallel-size); give one kind, or one of each stage"));
  EXPECT_THAT(faults("full:13"), ElementsAre(HasSubstr("full:13 is of 13 layers of a cell, and the model has 12")));
  EXPECT_THAT(faults("full@1"), IsEmpty());
  EXPECT_THAT(faults("full@2,none,none"),
              ElementsAre(HasSubstr("full@2 is of 2 token slices, and a sequence runs whole; leave out @2")));
  EXPECT_THAT(faults("full@4", {"--token-slices", "uniform:3"}),
              ElementsAre(HasSubstr("full@4 is of 4 token slices, and a sequence has 3; leave out @4")));
  EXPECT_THAT(faults("full@2", {"--token-slices", "auto"}),
              ElementsAre(HasSubstr("--token-slices is auto: their number is still to be chosen; leave out @2")));
}

TEST(PipelineFaults, AllAreReportedAtOnce) {
  EXPECT_THAT(faults_of({"--pp", "2", "--virtual-stages", "2", "--pipeline-layout", "12", "--token-slices", "1,2",
                         "--schedule", "gpipe", "--logits-chunk", "-1"}),
              ElementsAre(HasSubstr("--token-slices 1,2 adds up to 3"), HasSubstr("--token-slices is 1,2"),
                          HasSubstr("--virtual-stages is 2"), HasSubstr("--pipeline-layout 12 has 1 cell;"),
                          HasSubstr("--logits-chunk is -1")));
}

}  // namespace
}  // namespace teratron::testing

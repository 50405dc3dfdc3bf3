// What a run that goes on may change: settings that its checkpoint records, samples that are counted, rules that a flag
// overrides.
#include "train/config/resume_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "options/reading.h"
#include "train/save_folder.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ResumeRules : public TrainingFixture {
 protected:
  // The first two updates of six, saved.
  TrainingRun begin(TrainConfig config) {
    config.output.save = folder_ / "run";
    config.optimizer.learning_rate.decay = 6;
    config.train_iters = 2;
    fs::remove_all(config.output.save);
    return train(config);
  }
  TrainConfig resumed(std::int64_t iterations = 6) const {
    TrainConfig config = config_;
    config.output.load = folder_ / "run";
    config.train_iters = iterations;
    return config;
  }
  std::string refusal(const TrainConfig& config) {
    return message_of<UserError>([&] { train(config); });
  }
};

// A ramp of 4 samples until 8 are consumed, then of 8, is the same run without an interruption.
TEST_F(ResumeRules, AnotherBatchSizeGoesOnWithTheNextSampleWhateverTheLayout) {
  config_.optimizer.learning_rate.decay = 6;
  config_.model.config.hidden_dropout = config_.model.config.attention_dropout = 0;
  for (const std::int64_t copies : {1, 2}) {
    TrainConfig whole = config_;
    whole.train_iters = 6;
    whole.batch.global_batch_size = 8;
    whole.batch.rampup_batch_size = {4, 4, 8};
    begin(config_);
    TrainConfig second = resumed();
    second.batch.global_batch_size = 8;
    second.layout.data_parallel = whole.layout.data_parallel = copies;
    const TrainingRun expected = train(whole), actual = train(second);
    ASSERT_EQ(actual.losses.size(), 4U);
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(actual.reports[i].consumed_samples, expected.reports[i + 2].consumed_samples);
      // Two copies and one add up in another order in the first two updates.
      EXPECT_NEAR(actual.losses[i], expected.losses[i + 2], 1e-5 * expected.losses[i + 2]) << copies;
    }
    EXPECT_EQ(actual.result.consumed_samples, 8 + 4 * 8);
  }
}

TEST_F(ResumeRules, TheCountOfSamplesSurvivesASecondChange) {
  begin(config_);
  TrainConfig second = resumed(4);
  second.batch.global_batch_size = 6;
  second.output.save = second.output.load;
  train(second);
  TrainConfig third = resumed(5);
  third.batch.global_batch_size = 2;
  EXPECT_EQ(train(third).result.consumed_samples, 2 * 4 + 2 * 6 + 2);
}

TEST_F(ResumeRules, TokensOfThePastKeepTheirNumberWhereSequencesGetAnotherLength) {
  EXPECT_EQ(begin(config_).reports.back().consumed_tokens, 2 * 4 * 16);
  TrainConfig config = resumed(3);
  config.model.seq_length = 8;
  config.model.config.max_position_embeddings = 16;
  config.split.override_data = true;
  config.output.save = folder_ / "run";
  EXPECT_EQ(train(config).reports.back().consumed_tokens, 2 * 4 * 16 + 4 * 8);
  EXPECT_EQ(read_checkpoint_info(folder_ / "run").state.consumed_tokens, 2 * 4 * 16 + 4 * 8);
}

TEST_F(ResumeRules, AnotherSeedSequenceLengthOrSplitNeedsOverrideData) {
  begin(config_);
  const auto expect_refused = [&](TrainConfig config, const std::string& what) {
    EXPECT_THAT(refusal(config), AllOf(HasSubstr(what), HasSubstr("--override-data"))) << what;
    config.split.override_data = true;
    EXPECT_EQ(train(config).losses.size(), 4U) << what;
  };
  TrainConfig config = resumed();
  config.seed = 77;
  expect_refused(config, "--seed 1234 there, 77 now");
  config = resumed();
  config.model.seq_length = 8;
  config.model.config.max_position_embeddings = 16;
  expect_refused(config, "--seq-length 16 there, 8 now");
  config = resumed();
  config.split.weights = "4,1";
  expect_refused(config, "--split 9,1 there, 4,1 now");
  config = resumed();
  config.split.order = SplitOrder::kFile;
  expect_refused(config, "now --split-order file is given");
  config_.split.weights.clear();
  begin(config_);
  config = resumed();
  config.split.weights = "4,1";
  expect_refused(config, "--split 29,1 there, 4,1 now");
  config.split.weights = "29,1";
  EXPECT_EQ(train(config).losses.size(), 4U) << "the default, written out";
}

TEST_F(ResumeRules, AnotherDataSetNeedsOverrideDataWhereverItLies) {
  begin(config_);
  const auto write = [&](int documents) {
    IndexedDatasetWriter writer(folder_ / "corpus", kVocab);
    std::mt19937 random(3);
    for (int i = 0; i < documents; ++i) {
      std::vector<std::int32_t> tokens(40);
      for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % kVocab);
      writer.add_document(tokens);
    }
    writer.commit();
  };
  write(37);
  EXPECT_THAT(refusal(resumed()), AllOf(HasSubstr("has 37 documents and 1,480 tokens"), HasSubstr("--override-data")));
  TrainConfig config = resumed();
  config.split.override_data = true;
  EXPECT_EQ(train(config).losses.size(), 4U);
}

TEST_F(ResumeRules, AnotherScheduleNeedsItsOverrideAndAllFaultsComeAtOnce) {
  begin(config_);
  TrainConfig config = resumed();
  config.optimizer.learning_rate.peak = 2e-2;
  config.optimizer.learning_rate.minimum = 1e-4;
  config.optimizer.learning_rate.warmup = 1;
  config.optimizer.learning_rate.decay = 5;
  config.optimizer.learning_rate.style = DecayStyle::kLinear;
  config.seed = 77;
  const std::string message = refusal(config);
  for (const char* flag : {"--lr 0.01 there, 0.02", "--min-lr", "--lr-warmup-iters", "--lr-decay-iters 6 there, 5 now",
                           "--lr-decay-style", "--override-opt-param-scheduler", "--seed", "--override-data"}) {
    EXPECT_THAT(message, HasSubstr(flag));
  }
  config.seed = config_.seed;
  config.output.override_schedule = true;
  const TrainingRun run = train(config);
  EXPECT_EQ(run.reports.front().learning_rate, config.schedule().at(3));
}

// Masks are a part of the samples (a run of GPT-2 has none, and records the settings all the same).
TEST_F(ResumeRules, OtherMasksNeedOverrideData) {
  begin(config_);
  TrainConfig config = resumed();
  config.bert.max_ngram = 5;
  EXPECT_THAT(refusal(config), AllOf(HasSubstr("--masking-max-ngram 0 there, 5 now"), HasSubstr("--override-data")));
  config = resumed();
  config.bert.options.ngrams.is_geometric = true;
  EXPECT_THAT(refusal(config), HasSubstr("--masking-use-geometric-distribution false there, true now"));
}

// The state of one optimizer says nothing to another: not even an override lets it change, but a new run may.
TEST_F(ResumeRules, AnotherOptimizerNeedsANewRun) {
  begin(config_);
  TrainConfig config = resumed();
  config.optimizer.kind = OptimizerKind::kMuon;
  config.output.override_schedule = config.split.override_data = true;
  EXPECT_THAT(refusal(config), AllOf(HasSubstr("--optimizer adamw there, muon now"), HasSubstr("--finetune")));
  config.output.load.clear();
  config.output.finetune = folder_ / "run";
  EXPECT_FALSE(train(config).losses.empty());
}

// The schedule is the checkpoint's: more updates do not stretch it.
TEST_F(ResumeRules, MoreUpdatesKeepTheScheduleUnlessItIsOverridden) {
  begin(config_);
  TrainConfig config = resumed(12);
  const TrainingRun kept = train(config);
  LearningRateSchedule schedule = config_.optimizer.learning_rate;
  schedule.decay = 6;
  for (const IterationReport& report : kept.reports) EXPECT_EQ(report.learning_rate, schedule.at(report.iteration));
  config.output.override_schedule = true;
  const TrainingRun stretched = train(config);
  schedule.decay = 12;
  for (const IterationReport& report : stretched.reports)
    EXPECT_EQ(report.learning_rate, schedule.at(report.iteration));
}

TEST_F(ResumeRules, EverySettingThatDiffersIsListedAndOthersAreNot) {
  begin(config_);
  const CheckpointInfo info = read_checkpoint_info(folder_ / "run");
  const auto names = [&](TrainConfig config) {
    std::vector<std::string> found;
    for (const SettingDifference& difference : differences_from(info, filled_from(info, std::move(config)))) {
      found.push_back(difference.field);
    }
    return found;
  };
  TrainConfig config = resumed(2);
  EXPECT_THAT(names(config), ::testing::IsEmpty());
  config.output.save = "elsewhere";
  config.layout.threads = 3;
  EXPECT_THAT(names(config), ::testing::IsEmpty());
  config.optimizer.adamw.weight_decay = 0.5;
  config.batch.micro_batch_size = 1;
  config.model.config.hidden_dropout = 0.25;
  config.backend.bf16 = true;
  config.layout.tensor_parallel = 3;
  config.output.eval_iters = 9;
  EXPECT_THAT(names(config), ::testing::UnorderedElementsAre("weight-decay", "micro-batch-size", "hidden-dropout",
                                                             "bf16", "tensor-model-parallel-size", "eval-iters"));
}

TEST_F(ResumeRules, AnnounceTheLearningRateThatFollows) {
  TrainConfig config = config_;
  config.optimizer.learning_rate = {
      .peak = 0.5, .minimum = 0.125, .warmup = 4, .decay = 10, .style = DecayStyle::kLinear};
  config.train_iters = 20;
  EXPECT_THAT(future_of_learning_rate(config, 1),
              HasSubstr("rises from 0.25 to 0.5 at update 4, falls to 0.125 at update 10 and stays there"));
  EXPECT_THAT(future_of_learning_rate(config, 6),
              HasSubstr("goes on from 0.3125, falls to 0.125 at update 10 and stays"));
  EXPECT_THAT(future_of_learning_rate(config, 10),
              AllOf(HasSubstr("come down to 0.125 after 10 updates and stays there"),
                    HasSubstr("--lr-decay-iters 20 --override-opt")));
  config.optimizer.learning_rate.decay = 20;
  EXPECT_THAT(future_of_learning_rate(config, 10), ::testing::EndsWith("falls to 0.125 at update 20"));
  config.optimizer.learning_rate.style = DecayStyle::kConstant;
  EXPECT_THAT(future_of_learning_rate(config, 10), HasSubstr("stays at 0.5"));
  config.optimizer.learning_rate.style = DecayStyle::kWsd;
  config.optimizer.learning_rate.wsd_decay = 6;
  EXPECT_THAT(
      future_of_learning_rate(config, 1),
      HasSubstr("rises from 0.25 to 0.5 at update 4, stays there until update 14, falls to 0.125 at update 20"));
  EXPECT_THAT(future_of_learning_rate(config, 10),
              HasSubstr("stays at 0.5 until update 14, falls to 0.125 at update 20"));
  EXPECT_THAT(future_of_learning_rate(config, 17), HasSubstr("goes on from"));
}

TEST_F(ResumeRules, AnEarlierCheckpointGoesOnInItsFolderAndLaterOnesAreSetAside) {
  TrainConfig config = config_;
  config.output.save = folder_ / "run";
  config.output.save_interval = 2;
  config.optimizer.learning_rate.decay = 8;
  const TrainingRun whole = train(config);
  fs::create_directory_symlink("iter_0000006", config.output.save / "best");
  for (const bool by_path : {false, true}) {
    TrainConfig second = config;
    second.output.load = by_path ? config.output.save / "iter_0000004" : config.output.save;
    second.output.iteration = by_path ? 0 : 4;
    check_save_folder(second);
    const std::vector<fs::path> aside = begin_save_folder(second, 4);
    ASSERT_EQ(aside.size(), 2U);
    for (const fs::path& folder : aside) EXPECT_TRUE(verify_checkpoint(folder).intact());
    EXPECT_EQ(aside.front().filename(), by_path ? "iter_0000006.2" : "iter_0000006");
    EXPECT_EQ(read_checkpoint_info(config.output.save).state.iteration, 4);
    EXPECT_FALSE(fs::is_symlink(config.output.save / "best"));
    EXPECT_EQ(train(second).parameters, whole.parameters);
  }
}

TEST_F(ResumeRules, ACheckpointWithoutARecordStillKnowsItsSeedItsTokensAndItsLearningRate) {
  begin(config_);
  CheckpointInfo info = read_checkpoint_info(folder_ / "run");
  info.settings.reset();
  TrainConfig config = resumed();
  config.optimizer.learning_rate.decay = 6;
  EXPECT_NO_THROW(require_resumable(info, config));
  const auto expect_fault = [&](const TrainConfig& other, const std::string& what) {
    EXPECT_THAT(message_of<UserError>([&] { require_resumable(info, other); }), HasSubstr(what));
  };
  config.seed = 5;
  expect_fault(config, "--seed 1234 there, 5 now");
  config.seed = config_.seed;
  config.model.seq_length = 8;
  config.model.config.max_position_embeddings = 16;
  expect_fault(config, "--seq-length 16 there, 8 now");
  config.model.seq_length = 16;
  config.optimizer.learning_rate.decay = 9;
  expect_fault(config, "learning rate of update 2");
}

// From which a command in another folder starts another run.
TEST(SavedSettings, NameTheirInputsByAbsolutePaths) {
  TrainConfig config;
  config.data_path = {"corpus"};
  config.model.tokenizer = "tokenizer";
  config.pipeline.profile = "profile.json";
  const std::string saved = saved_settings(config);
  for (const char* const name : {"corpus", "tokenizer", "profile.json"}) {
    EXPECT_THAT(saved, HasSubstr("\"" + (fs::current_path() / name).string() + "\"")) << name;
  }
}

// There is no flag for the scaling of rotary positions.
TEST(SavedSettings, KeepTheScaledPositionsOfAPreset) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "config.toml";
  for (const std::vector<std::string>& shape : {std::vector<std::string>{}, {"--num-layers", "2"}}) {
    TrainConfig config, again;
    std::vector<std::string> arguments = {"--model", "llama-3.2-1b"};
    arguments.insert(arguments.end(), shape.begin(), shape.end());
    FieldList fields = fields_of(config), read_back = fields_of(again);
    read_fields(fields, arguments);
    ASSERT_EQ(config.model.config.rotary.scaling, RotaryConfig::Scaling::kLlama3);
    write_file_atomically(file, saved_settings(config));
    EXPECT_TRUE(read_fields(read_back, std::vector<std::string>{"--config", file.string()}).empty());
    EXPECT_EQ(again.model.config.num_layers, config.model.config.num_layers);
    EXPECT_EQ(again.model.config.layer_config(), config.model.config.layer_config());
  }
}

}  // namespace
}  // namespace teratron::testing

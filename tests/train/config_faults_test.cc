// What is wrong with a configuration is told all at once, with what would be right.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "options/reading.h"
#include "train/config/config.h"
#include "train/random_config.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TrainConfig sound_config() {
  TrainConfig config;
  config.train_iters = 100;
  return config;
}

std::string refusal(const std::vector<std::string>& arguments) {
  return message_of<UserError>([&] { read_options<TrainConfig>(arguments); });
}

TEST(ConfigFaults, WeightsThatCopiesShareOutAreNotTrained) {
  for (const char* kind : {"weights", "gradients"}) {
    const std::string message =
        refusal({"--data-path", "corpus", "--train-iters", "10", "--model", "tiny", "--data-parallel-sharding", kind});
    EXPECT_THAT(message, AllOf(HasSubstr(kind), HasSubstr("teratron plan"), HasSubstr("--use-distributed-optimizer")));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(ConfigFaults, ThereAreNoneInASoundConfiguration) {
  EXPECT_THAT(sound_config().faults(), IsEmpty());
  EXPECT_EQ(refusal({"--data-path", "corpus", "--train-iters", "10", "--model", "tiny"}), kNoError);
}

TEST(ConfigFaults, JointSlicesAreThePlanners) {
  const std::string message = refusal({"--data-path", "corpus", "--train-iters", "10", "--model", "tiny", "--pp", "2",
                                       "--token-slices", "joint", "--micro-batch-size", "2"});
  EXPECT_THAT(message, AllOf(HasSubstr("--token-slices"), HasSubstr("teratron plan"), HasSubstr("2x512,512+1x1024")));
}

TEST(ConfigFaults, ValuesThatDisagreeAreNamedTogether) {
  TrainConfig config = sound_config();
  config.model.config.max_position_embeddings = 512;
  config.optimizer.learning_rate.minimum = 1;
  config.optimizer.learning_rate.warmup = 101;
  config.output.save_interval = 5;
  EXPECT_THAT(config.faults().texts(),
              UnorderedElementsAre(AllOf(HasSubstr("--seq-length 1024"), HasSubstr("--max-position-embeddings 512")),
                                   AllOf(HasSubstr("--min-lr 1"), HasSubstr("--lr 0.00015")),
                                   AllOf(HasSubstr("--lr-warmup-iters 101"), HasSubstr("--train-iters")),
                                   AllOf(HasSubstr("--save-interval 5"), HasSubstr("--save DIR"))));
}

TEST(ConfigFaults, EveryNumberOutOfItsRangeIsReportedByItsFlag) {
  // -1 suits no number of the configuration.
  TrainConfig config;
  for (Field& field : fields_of(config)) {
    if (auto* const* integer = std::get_if<std::int64_t*>(&field.target)) **integer = -1;
    if (auto* const* number = std::get_if<double*>(&field.target)) **number = -1;
  }
  // Epsilon and deviation are the model's, which is looked at once its sizes make sense.
  const std::string all = fmt::format("{}", fmt::join(config.faults().texts(), "\n"));
  config.model.config = sound_config().model.config;
  config.layout.tensor_parallel = config.layout.data_parallel = 1;
  config.model.seq_length = 8;
  config.model.config.layernorm_epsilon = config.model.config.init_method_std = -1;
  config.model.config.hidden_dropout = config.model.config.attention_dropout = -1;
  config.model.config.adapters = {.rank = 8, .alpha = -1, .dropout = -1};
  const std::string more = fmt::format("{}", fmt::join(config.faults().texts(), "\n"));
  for (const Field& field : fields_of(config)) {
    const bool number =
        std::holds_alternative<std::int64_t*>(field.target) || std::holds_alternative<double*>(field.target);
    if (number) {
      EXPECT_THAT(all + more, HasSubstr("--" + field.name + " ")) << field.name;
    }
  }
}

// Warm-up, stable phase and decay fit into the schedule, whatever the length of each.
TEST(ConfigFaults, WsdNeedsADecayThatFitsAfterTheWarmUp) {
  TrainConfig config = sound_config();
  config.train_iters = 100;
  config.optimizer.learning_rate.warmup = 10;
  config.optimizer.learning_rate.style = DecayStyle::kWsd;
  for (const auto& [decay, is_sound] :
       std::vector<std::pair<std::int64_t, bool>>{{0, false}, {1, true}, {90, true}, {91, false}}) {
    config.optimizer.learning_rate.wsd_decay = decay;
    const std::vector<std::string> faults = config.faults().texts();
    EXPECT_EQ(faults.empty(), is_sound) << decay << ": " << fmt::format("{}", fmt::join(faults, "; "));
    for (const std::string& fault : faults) EXPECT_THAT(fault, HasSubstr("--lr-wsd-decay-iters"));
  }
}

TEST(ConfigFaults, OnlyCpusRunMuon) {
  TrainConfig config = sound_config();
  config.optimizer.kind = OptimizerKind::kMuon;
  EXPECT_TRUE(config.faults().empty());
  config.backend.kind = BackendKind::kCuda;
  EXPECT_THAT(fmt::format("{}", fmt::join(config.faults().texts(), "; ")), HasSubstr("--optimizer muon does not run"));
}

TEST(ConfigFaults, AnyValuesWhateverGiveFaultsAndNoOverflow) {
  RandomSequence random(RandomStream{.seed = 3});
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::string> arguments;
    TrainConfig config;
    FieldList fields = fields_of(config);
    for (const Field& field : fields) {
      const bool skipped = field.role == FieldRole::kConfigFile || random.below(2) == 0;
      if (!skipped) arguments.push_back("--" + field.name + "=" + random_value(field, random));
    }
    read_fields(fields, arguments);
    config.faults();  // the sanitizers watch
  }
}

TEST(ConfigFaults, AllOfTheFileTheLineAndTheValuesComeAtOnce) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "a.toml").string();
  write_file_atomically(file, "hiden_size = 8\nlr = \"fast\"\nnum_attention_heads = 7\n");
  const std::string message = refusal({"--config", file, "--min-lrr", "3", "--train-iters", "x", "--eval-iters", "0"});
  EXPECT_THAT(message, HasSubstr("7 faults"));
  EXPECT_THAT(message, HasSubstr("unknown key 'hiden_size' (" + file + ":1); did you mean 'hidden_size'?"));
  EXPECT_THAT(message, HasSubstr("--lr is 'fast'; a number is needed (" + file + ":2)"));
  EXPECT_THAT(message, HasSubstr("unknown flag '--min-lrr'; did you mean '--min-lr'?"));
  EXPECT_THAT(message, HasSubstr("--train-iters is 'x'; a whole number is needed"));
  EXPECT_THAT(message, HasSubstr("--eval-iters is 0; it must be at least 1"));
  EXPECT_THAT(message, HasSubstr("--data-path PREFIX is missing"));
  EXPECT_THAT(message, HasSubstr("nearest that are: 763, 770 (--num-attention-heads from " + file + ":3)"));
}

TEST(ConfigFaults, LeaveOutFaultsThatFollowFromAReportedValue) {
  const std::string message = refusal({"--data-path", "corpus", "--train-iters", "many"});
  EXPECT_EQ(message, "--train-iters is 'many'; a whole number is needed");
}

}  // namespace
}  // namespace teratron::testing

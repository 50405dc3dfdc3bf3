// What a run takes is planned without ranks, and flags that make it fit are found by planning.
#include "train/plans/memory_remedies.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/files/file.h"
#include "base/philox.h"
#include "base/temporary_folder.h"
#include "ops/cpu/scratch.h"
#include "options/reading.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

const MemoryPlanContext kContext{.vocab_size = 50, .compute_dtype = DType::kF32};

std::int64_t one_of(RandomSequence& random, const std::vector<std::int64_t>& values) {
  return values[random.below(values.size())];
}

// Of some layout, as it comes before the flags of a remedy.
TrainConfig random_run(RandomSequence& random) {
  TrainConfig config;
  config.data_path = {"corpus"};
  config.train_iters = 1;
  config.model.config.num_layers = one_of(random, {2, 4});
  config.model.config.hidden_size = 24;
  config.model.config.num_attention_heads = one_of(random, {4, 8});
  if (random.below(3) == 0) become_llama(config.model.config);
  config.model.seq_length = one_of(random, {8, 16});
  config.batch.micro_batch_size = one_of(random, {1, 3, 8});
  config.layout.tensor_parallel = one_of(random, {1, 2});
  config.layout.pipeline_parallel = one_of(random, {1, 2});
  config.layout.data_parallel = one_of(random, {1, 2});
  config.batch.global_batch_size = one_of(random, {0, 16});
  config.layout.recompute = name_of(static_cast<Recompute>(random.below(3)));
  if (random.below(3) == 0) config.layout.recompute = random_recompute(config, random);
  if (config.layout.recompute == "none" && config.model.config.num_layers == 4) {
    config.layout.keep_activations = KeepActivations::kAll;
  }
  config.layout.packed_weights = random.below(2) == 1 ? PackWeights::kAll : PackWeights::kNone;
  config.layout.sequence_parallel = random.below(2) == 1;
  config.layout.distributed_optimizer = random.below(2) == 1;
  return config;
}

class MemoryPlan : public TrainingFixture {};

TEST_F(MemoryPlan, IsWhatLiveRanksTake) {
  RandomSequence random({.seed = 1});
  for (int trial = 0; trial < 12; ++trial) {
    TrainConfig config = random_run(random);
    config.split.weights = "9,1";
    config.data_path = config_.data_path;
    if (trial % 2 == 1) config.optimizer.kind = OptimizerKind::kMuon;
    SCOPED_TRACE(to_toml(config));
    std::vector<std::int64_t> taken(static_cast<std::size_t>(config.layout.pipeline_parallel), 0);
    std::mutex mutex;
    on_ranks(config, [&](Trainer& trainer, Communicator&) {
      const std::int64_t bytes = trainer.executor().memory().bytes();
      const std::lock_guard lock(mutex);
      auto& most = taken[static_cast<std::size_t>(trainer.executor().mesh().pipeline->rank())];
      most = std::max(most, bytes);
    });
    EXPECT_EQ(planned_memory(config, kContext), taken);
  }
}

// What the threads of every rank grow in a step, against what the plan of its stage counts for them.
TEST_F(MemoryPlan, CountsWhatThreadsTakeToCompute) {
  RandomSequence random({.seed = 4});
  for (int trial = 0; trial < 6; ++trial) {
    TrainConfig config = random_run(random);
    config.split.weights = "9,1";
    config.data_path = config_.data_path;
    if (trial % 2 == 1) config.optimizer.kind = OptimizerKind::kMuon;
    SCOPED_TRACE(to_toml(config));
    MemoryPlanContext context = kContext;
    context.threads = 3;
    const std::vector<std::int64_t> without = planned_memory(config, kContext), with = planned_memory(config, context);
    // A thread that has computed nothing yet starts them.
    std::thread([&] {
      on_ranks(config, [&](Trainer& trainer, Communicator&) {
        const StagePlan& plan = trainer.executor().plan();
        const auto stage = static_cast<std::size_t>(plan.cells().stage());
        EXPECT_EQ(with[stage] - without[stage], cpu_working_bytes(plan.work(), {}, 3));
        trainer.start();
        TrainingObserver silent;
        trainer.run(silent);
        const std::int64_t taken = scratch_sizes().bytes();
        EXPECT_GT(taken, 0);
        EXPECT_LE(taken, cpu_working_bytes(plan.work(), {}, 1));
      });
    }).join();
  }
}

// That all ranks take together.
std::int64_t bytes_of_all(const TrainConfig& config) {
  MemoryPlanContext context = kContext;
  context.compute_dtype = config.backend.compute_dtype();
  std::int64_t bytes = 0;
  for (const std::int64_t stage : planned_memory(config, context)) bytes += stage;
  return bytes * config.layout.tensor_parallel * config.layout.data_parallel;
}

// The configuration with flags as a user adds them.
TrainConfig with_flags(const TrainConfig& config, const std::vector<std::string>& flags) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "config.toml";
  write_file_atomically(file, to_toml(config));
  std::vector<std::string> words = {"--config", file.string()};
  words.insert(words.end(), flags.begin(), flags.end());
  return read_options<TrainConfig>(words);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

// Each flag is taken away in turn, with its value.
std::vector<std::vector<std::string>> with_one_flag_less(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> shorter;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--") || words[i] == "--global-batch-size") continue;
    const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("--");
    std::vector<std::string> rest = words;
    const auto at = rest.begin() + static_cast<std::ptrdiff_t>(i);
    rest.erase(at, at + (has_value ? 2 : 1));
    shorter.push_back(rest);
  }
  return shorter;
}

TEST(MemoryRemedies, FitAndNoneOfTheirFlagsIsTooMany) {
  RandomSequence random({.seed = 2});
  int found = 0, several_flags = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const TrainConfig config = random_run(random);
    SCOPED_TRACE(to_toml(config));
    const std::int64_t needed = bytes_of_all(config);
    const MemoryRoom room{.bytes = needed * static_cast<std::int64_t>(60 + random.below(40)) / 100,
                          .ranks = config.layout.mesh().ranks(),
                          .has_all_ranks = true};
    const std::optional<MemoryRemedy> remedy = memory_remedy(config, kContext, room);
    if (!remedy) continue;
    ++found;
    const std::vector<std::string> words = words_of(remedy->flags);
    const TrainConfig remedied = with_flags(config, words);
    EXPECT_EQ(remedied.faults().texts(), std::vector<std::string>());
    EXPECT_EQ(remedied.largest_batch(), config.largest_batch()) << remedy->flags;
    EXPECT_EQ(bytes_of_all(remedied), remedy->bytes) << remedy->flags;
    EXPECT_LE(remedy->bytes, room.bytes);
    const auto shorter = with_one_flag_less(words);
    several_flags += shorter.size() > 1 ? 1 : 0;
    for (const auto& flags : shorter) EXPECT_GT(bytes_of_all(with_flags(config, flags)), room.bytes);
  }
  EXPECT_GT(found, 20);
  EXPECT_GT(several_flags, 3);
}

TEST(MemoryRemedies, ChangeTheRunOnlyWhereNothingElseFits) {
  RandomSequence random({.seed = 3});
  int rounded = 0, shorter = 0;
  for (int trial = 0; trial < 100; ++trial) {
    TrainConfig config = random_run(random);
    config.model.seq_length = one_of(random, {16, 64, 128});
    SCOPED_TRACE(to_toml(config));
    const MemoryRoom room{.bytes = bytes_of_all(config) * static_cast<std::int64_t>(5 + random.below(80)) / 100,
                          .ranks = config.layout.mesh().ranks(),
                          .has_all_ranks = true};
    const std::optional<MemoryRemedy> remedy = memory_remedy(config, kContext, room);
    if (!remedy || (remedy->keeps_values && remedy->keeps_samples)) continue;
    rounded += remedy->keeps_values ? 0 : 1;
    shorter += remedy->keeps_samples ? 0 : 1;
    const TrainConfig remedied = with_flags(config, words_of(remedy->flags));
    EXPECT_EQ(remedied.faults().texts(), std::vector<std::string>()) << remedy->flags;
    EXPECT_EQ(bytes_of_all(remedied), remedy->bytes) << remedy->flags;
    EXPECT_LE(remedy->bytes, room.bytes) << remedy->flags;
    TrainConfig saving = config;  // all that keeps the run as it is
    saving.layout.distributed_optimizer = saving.layout.data_parallel > 1;
    saving.layout.sequence_parallel = saving.layout.tensor_parallel > 1;
    saving.layout.recompute = name_of(Recompute::kFull);
    saving.batch.global_batch_size = config.largest_batch();
    saving.batch.micro_batch_size = 1;
    if (saving.faults().empty()) {
      EXPECT_GT(bytes_of_all(saving), room.bytes) << remedy->flags;
    }
  }
  EXPECT_GT(rounded, 3);
  EXPECT_GT(shorter, 3);
}

// 1.5B parameters in 19.7 GiB: nearly all is weights, gradients and moments, which no shorter sample makes less.
TEST(MemoryRemedies, NameNoFlagThatDoesNotFit) {
  TrainConfig config;
  config.train_iters = 1;
  config.model.preset = "1.5B";
  config.model.config.num_layers = 48;
  config.model.config.hidden_size = 1600;
  config.model.config.num_attention_heads = 25;
  config.model.seq_length = 128;
  config.batch.micro_batch_size = 1;
  config.data_path = {"corpus"};
  const MemoryRoom room{.bytes = 197 * (std::int64_t{1} << 30) / 10, .has_all_ranks = true};
  const MemoryPlanContext context{.vocab_size = 50257, .compute_dtype = DType::kF32};
  const std::string advice = memory_advice(config, context, room);
  EXPECT_THAT(advice, HasSubstr("--optimizer-state bf16 needs"));
  EXPECT_THAT(advice, ::testing::Not(HasSubstr("--seq-length")));
  const HasFlag has_others = [](const std::string& flag) { return flag != "optimizer-state" && flag != "bf16"; };
  EXPECT_THAT(memory_advice(config, context, room, has_others), ::testing::Not(HasSubstr("bf16")))
      << "of a command that lacks the flags";
}

// Copies of the model in one process share its memory.
TEST(MemoryRemedies, MayBeFewerCopiesInOneProcess) {
  TrainConfig config;
  config.train_iters = 1;
  config.data_path = {"corpus"};
  config.model.config.num_layers = 2;
  config.model.config.hidden_size = 24;
  config.model.config.num_attention_heads = 3;
  config.model.seq_length = 8;
  config.batch.micro_batch_size = 1;
  config.layout.data_parallel = 4;
  config.layout.distributed_optimizer = true;
  TrainConfig one = config;
  one.layout.data_parallel = 1;
  one.batch.global_batch_size = 4;
  const MemoryRoom room{.bytes = bytes_of_all(one), .ranks = 4, .has_all_ranks = true};
  const std::optional<MemoryRemedy> remedy = memory_remedy(config, kContext, room);
  ASSERT_TRUE(remedy.has_value());
  EXPECT_EQ(remedy->flags, "--dp 1 --global-batch-size 4");
}

TEST(MemoryRemedies, LeaveOutTheCopyOfACheckpointWhereThatIsEnough) {
  RandomSequence random({.seed = 5});
  MemoryPlanContext on_cpu = kContext;
  on_cpu.threads = 1;
  for (int trial = 0; trial < 10; ++trial) {
    TrainConfig config = random_run(random);
    config.layout = {};
    config.output.save = "run";
    SCOPED_TRACE(to_toml(config));
    const MemoryRoom room{.bytes = planned_memory(config, on_cpu).front(), .has_all_ranks = true};
    config.output.async_save = true;
    EXPECT_THAT(memory_advice(config, on_cpu, room), ::testing::StartsWith("--async-save false needs"));
    const MemoryRoom device{.bytes = room.bytes, .has_all_ranks = true, .is_host = false};
    EXPECT_THAT(memory_advice(config, on_cpu, device), ::testing::Not(HasSubstr("--async-save")));
  }
}

TEST(MemoryRemedies, AreNoneWhereNothingHelps) {
  TrainConfig config;
  config.train_iters = 1;
  config.model.config.num_layers = 2;
  config.model.config.hidden_size = 24;
  config.model.config.num_attention_heads = 3;
  EXPECT_THAT(memory_advice(config, kContext, {.bytes = 1000, .is_host = false}), HasSubstr("a smaller model"));
}

}  // namespace
}  // namespace teratron::testing

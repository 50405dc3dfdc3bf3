// Faults in runs with --trace-numerics: bits that flip, shards of another rank, operations that give no numbers,
// samples and learning rates that a run cannot take. Each is named by rank and tensor or operation, or by document or
// rate; and what is no fault changes no bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/philox.h"
#include "base/trials.h"
#include "train/doctor_fixture.h"
#include "train/random_pipeline.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Doctors : public DoctorFixture {};

// The matrices of the layers that a rank holds.
std::vector<Parameter*> matrices_of(Trainer& trainer) {
  std::vector<Parameter*> matrices = trainer.executor().parameters();
  std::erase_if(matrices, [](const Parameter* parameter) { return !parameter->layer_matrix; });
  return matrices;
}

TEST_F(Doctors, NamesTheRankAndTheTensorOfAFlippedBit) {
  RandomSequence random({.seed = 41});
  for (int trial = 0; trial < trials(8); ++trial) {
    TrainConfig config = going_on(random_layout(random));
    config.output.save_interval = trial % 2 == 0 ? 0 : 2;  // the run goes back to its own checkpoint then
    const auto rank = static_cast<int>(random.below(static_cast<std::uint64_t>(config.layout.mesh().ranks())));
    const std::int64_t iteration = kTrained + 1 + static_cast<std::int64_t>(random.below(4));
    const std::uint64_t which = random.next_u32(), element = random.next_u32();
    std::string name;
    const DoctoredRun outcome = outcome_of(config, [&](Trainer& trainer, Communicator& world) -> Meddle {
      if (world.rank() != rank) return {};
      return [&](std::int64_t now) {
        if (now != iteration) return;
        const std::vector<Parameter*> matrices = matrices_of(trainer);
        Parameter& parameter = *matrices[which % matrices.size()];
        name = parameter.name;
        flip_exponent(trainer.executor().backend(), parameter.value, element);
      };
    });
    const std::string what = text_of_layout(config);
    EXPECT_EQ(outcome.end, End::kMachine) << what;
    EXPECT_THAT(outcome.error,
                HasSubstr(fmt::format("first in iteration {}, in which rank {} held other bits of '{}'. Neither",
                                      iteration + 1, rank, name)))
        << what;
    EXPECT_THAT(outcome.error, HasSubstr(fmt::format("at fault in iteration {} or after it", iteration))) << what;
    const std::int64_t good = config.output.save_interval == 0 ? kTrained : iteration / 2 * 2;
    EXPECT_THAT(outcome.notices, HasSubstr(fmt::format("doctor: goes back to iteration {} ", good))) << what;
  }
}

TEST_F(Doctors, NamesTheRankAndTheTensorOfAFlippedMoment) {
  RandomSequence random({.seed = 42});
  for (int trial = 0; trial < trials(3); ++trial) {
    const TrainConfig config = going_on(random_layout(random));
    const auto rank = static_cast<int>(random.below(static_cast<std::uint64_t>(config.layout.mesh().ranks())));
    const std::uint64_t which = random.next_u32(), element = random.next_u32();
    std::string name;
    const DoctoredRun outcome = outcome_of(config, [&](Trainer& trainer, Communicator& world) -> Meddle {
      if (world.rank() != rank) return {};
      return [&](std::int64_t now) {
        std::vector<Parameter*> matrices = matrices_of(trainer);
        std::erase_if(matrices, [](const Parameter* one) { return one->state.slots[0].values.elements() == 0; });
        if (now != kTrained + 2) return;
        Parameter& parameter = *matrices[which % matrices.size()];
        name = parameter.name;
        flip_exponent(trainer.executor().backend(), parameter.state.slots[0].values, element);
      };
    });
    EXPECT_EQ(outcome.end, End::kMachine) << text_of_layout(config);
    EXPECT_THAT(outcome.error,
                HasSubstr(fmt::format("first in iteration {}, in which rank {} held other bits of '{}'. ", kTrained + 4,
                                      rank, name)))
        << text_of_layout(config);
  }
}

TEST_F(Doctors, NamesTheRankThatHoldsAnothersShard) {
  for (const int wrong : {0, 2}) {
    TrainConfig config = config_;
    config.layout.tensor_parallel = 2;
    config.layout.pipeline_parallel = 1 + wrong / 2;
    config = going_on(config);
    std::map<std::string, std::vector<std::byte>> shards;  // of the other rank
    const DoctoredRun outcome = outcome_of(config, [&](Trainer& trainer, Communicator& world) -> Meddle {
      Backend& backend = trainer.executor().backend();
      const auto for_each = [&](const std::function<void(const Parameter&)>& visit) {
        for (const Parameter* parameter : trainer.executor().parameters()) {
          if (parameter->is_split()) visit(*parameter);
        }
      };
      if (world.rank() == wrong + 1) {
        for_each([&](const Parameter& parameter) {
          std::vector<std::byte>& bytes = shards[parameter.name];
          bytes.resize(static_cast<std::size_t>(parameter.value.bytes()));
          backend.download(bytes.data(), parameter.value);
        });
      }
      world.barrier();
      if (world.rank() == wrong) {
        for_each(
            [&](const Parameter& parameter) { backend.upload(parameter.value, shards.at(parameter.name).data()); });
      }
      return {};
    });
    EXPECT_EQ(outcome.end, End::kMachine) << outcome.notices;
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr(fmt::format("first in iteration {}, in which rank {} held other bits of '",
                                            kTrained + 1, wrong)),
                      HasSubstr("more tensors"), HasSubstr("between the start of the run and its first update")));
  }
}

TEST_F(Doctors, NamesTheOperationThatGivesNoNumbers) {
  using Operation = BreakingOperation::Operation;
  const std::vector<std::pair<Operation, std::string>> operations = {
      {Operation::kProjections, "the product of queries, keys and values"},
      {Operation::kAttention, "attention"},
      {Operation::kActivation, "the FFN's activation"},
      {Operation::kDown, "the FFN's down product"}};
  int trial = 0;
  for (const auto& [operation, name] : operations) {
    TrainConfig config = config_;
    config.layout.pipeline_parallel = 1 + trial % 2;
    config.layout.data_parallel = 1 + trial / 2;
    config.layout.recompute = name_of(operation == Operation::kAttention ? Recompute::kNone : Recompute::kSelective);
    config.batch.micro_batch_size = 8 / config.layout.data_parallel;  // one micro-batch a rank: its memory is known
    config.optimizer.loss_scaling.initial = 1024;
    const int rank = config.layout.mesh().ranks() - 1;
    const int layers = static_cast<int>(4 / config.layout.pipeline_parallel);
    const BreakingOperation::Place place{.operation = operation, .iteration = kTrained + 3, .index = trial % layers};
    const std::int64_t layer = place.index + (config.layout.pipeline_parallel - 1) * layers;
    config = going_on(config);
    std::optional<BreakingOperation> breaking;
    const DoctoredRun outcome = outcome_of(config, [&](Trainer& trainer, Communicator& world) -> Meddle {
      if (world.rank() != rank) return {};
      breaking.emplace(trainer, place);
      trainer.executor().backend().set_observer(&*breaking);
      return {};
    });
    EXPECT_EQ(outcome.end, End::kDiverged) << name;
    EXPECT_THAT(outcome.error,
                AllOf(HasSubstr(fmt::format("the output of layer {} (rank {}, its micro-batch ", layer, rank)),
                      HasSubstr("is not finite, first that of " + name)));
    EXPECT_THAT(outcome.error, HasSubstr("repeats it bit for bit"));
    ++trial;
  }
}

TEST_F(Doctors, NamesTheRankAndTheLayerThatFailedOnce) {
  RandomSequence random({.seed = 43});
  for (int trial = 0; trial < trials(3); ++trial) {
    TrainConfig config = config_;
    config.layout.pipeline_parallel = 1 + trial % 2;
    config.layout.data_parallel = 2;
    config.batch.micro_batch_size = 4;
    const int rank = static_cast<int>(random.below(static_cast<std::uint64_t>(config.layout.mesh().ranks())));
    const int stages = static_cast<int>(config.layout.pipeline_parallel), stage = rank % stages;
    const BreakingOperation::Place place{.operation = BreakingOperation::Operation::kAttention,
                                         .iteration = kTrained + 2,
                                         .index = static_cast<int>(random.below(2)),
                                         .persists = false};
    config = going_on(config);
    std::optional<BreakingOperation> breaking;
    const DoctoredRun outcome = outcome_of(config, [&](Trainer& trainer, Communicator& world) -> Meddle {
      if (world.rank() != rank) return {};
      breaking.emplace(trainer, place);
      trainer.executor().backend().set_observer(&*breaking);
      return {};
    });
    EXPECT_EQ(outcome.end, End::kMachine) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr(fmt::format(
                                   "first in iteration {}, in which rank {} computed other bits of the output of layer "
                                   "{}. Neither",
                                   place.iteration, rank, place.index + stage * 4 / stages)));
  }
}

TEST_F(Doctors, NamesTheDocumentOfABadSampleAndGoesOn) {
  RandomSequence random({.seed = 44});
  for (int trial = 0; trial < trials(3); ++trial) {
    TrainConfig config = going_on(random_layout(random));
    config.data_path = {(folder_ / "spoilt").string()};
    config.seed = 100 + trial;
    config.split.override_data = true;
    config.train_iters = kTrained + 25;
    const DoctoredRun outcome = outcome_of(config);
    EXPECT_EQ(outcome.end, End::kGood) << outcome.error;
    EXPECT_THAT(
        outcome.notices,
        AllOf(HasSubstr("repeats it bit for bit"), HasSubstr("The loss lies in few samples"),
              HasSubstr(fmt::format("of the run, document 40 of '{}', tokens", (folder_ / "spoilt").string()))));
    // Without the doctor the bits are the same.
    TrainConfig untraced = config;
    untraced.output.trace_numerics = false;
    untraced.output.save = folder_ / fmt::format("untraced-{}", trial);
    EXPECT_EQ(outcome.parameters, outcome_of(untraced).parameters) << text_of_layout(config);
  }
}

TEST_F(Doctors, NamesTheUpdateWhoseLearningRateJumps) {
  RandomSequence random({.seed = 45});
  for (int trial = 0; trial < trials(3); ++trial) {
    TrainConfig config = going_on(random_layout(random));
    config.optimizer.learning_rate.peak *= 300;
    config.output.override_schedule = true;
    const DoctoredRun outcome = outcome_of(config);
    EXPECT_NE(outcome.end, End::kMachine) << outcome.error;
    EXPECT_THAT(outcome.notices + outcome.error,
                AllOf(HasSubstr("repeats it bit for bit"),
                      HasSubstr(fmt::format("The learning rate of iteration {} is 300 times that of the update before",
                                            kTrained + 1))))
        << text_of_layout(config);
  }
}

// With fp16 it is no fault that some gradients overflow.
TEST_F(Doctors, TakesNoSkippedUpdateForTheUnusualNorm) {
  const TrainingTask task = make_training_task(config_, open_training_data(config_), kVocab);
  Account account;
  const auto add = [&](std::int64_t iteration, double norm) {
    Update update;
    update.report.iteration = iteration;
    update.gradient_norm = norm;
    account.add(update, {});
  };
  const double overflow = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  add(1, 2);
  add(2, nan);
  add(3, overflow);
  add(4, 2);
  EXPECT_EQ(account.text(4, {}, *task.training), "");
  add(5, 100);
  add(6, 2);
  EXPECT_THAT(account.text(6, {}, *task.training), HasSubstr("The gradient norm of iteration 5 is 100, where 2"));
  add(7, overflow);
  EXPECT_THAT(account.text(7, {}, *task.training), HasSubstr("The gradient norm of iteration 7 is inf"));
}

TEST_F(Doctors, GoesBackToTheStartWhereNothingIsSaved) {
  TrainConfig config = config_;
  config.output.save.clear();
  config.train_iters = 6;
  const DoctoredRun outcome = outcome_of(config, [](Trainer& trainer, Communicator&) -> Meddle {
    return [&trainer](std::int64_t now) {
      if (now == 3) flip_exponent(trainer.executor().backend(), matrices_of(trainer).front()->value, 5);
    };
  });
  EXPECT_EQ(outcome.end, End::kMachine);
  EXPECT_THAT(outcome.notices, HasSubstr("doctor: goes back to the start and replays 4 updates"));
  EXPECT_THAT(outcome.error, HasSubstr("first in iteration 4, in which rank 0 held other bits of "));
}

// In all precisions and layouts: a run without a fault has the bits of one without the doctor, and in fp32 nearly the
// same numbers as any other layout.
TEST_F(Doctors, NoLayoutChangesTheNumbersAndTheDoctorNoBit) {
  RandomSequence random({.seed = 46});
  config_.output.save.clear();
  config_.train_iters = 3;
  const DoctoredRun alone = outcome_of(config_);
  for (int trial = 0; trial < trials(8); ++trial) {
    TrainConfig config = random_pipeline(config_, random);
    config.backend.bf16 = trial % 4 == 2;
    config.backend.fp16 = trial % 4 == 3;
    const DoctoredRun traced = outcome_of(config);
    const std::string what = text_of_layout(config);
    ASSERT_EQ(traced.end, End::kGood) << traced.error << what;
    config.output.trace_numerics = false;
    EXPECT_EQ(traced.parameters, outcome_of(config).parameters) << what;
    ASSERT_EQ(traced.reports.size(), alone.reports.size());
    if (trial % 4 > 1) continue;
    for (std::size_t i = 0; i < alone.reports.size(); ++i) {
      ASSERT_EQ(traced.reports[i].layers.size(), 5U);
      for (std::size_t layer = 0; layer < 5; ++layer) {
        const LayerNumerics &a = traced.reports[i].layers[layer], &b = alone.reports[i].layers[layer];
        const auto expect_near = [&](const LayerNumerics::Values& x, const LayerNumerics::Values& y, const char* of) {
          EXPECT_GT(y.rms, 0) << of;
          EXPECT_NEAR(x.rms, y.rms, 1e-4 * y.rms) << of << " of layer " << b.layer << ", " << what;
          EXPECT_NEAR(x.largest, y.largest, 1e-4 * y.largest) << of << " of layer " << b.layer << ", " << what;
        };
        EXPECT_EQ(a.layer, b.layer);
        expect_near(a.output, b.output, "output");
        expect_near(a.gradient, b.gradient, "gradient");
        expect_near(a.weights, b.weights, "weights");
      }
    }
  }
}

}  // namespace
}  // namespace teratron::testing

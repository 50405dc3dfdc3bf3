// Ranks that should hold the same bits: they do in any layout, and one that does not is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "base/message_of.h"
#include "base/philox.h"
#include "base/trials.h"
#include "train/random_pipeline.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kUpdates = 3;

// A bit of a parameter's weights on one rank, which flips after an update.
struct Flip {
  std::int64_t iteration = 0;
  int rank = 0;
  std::size_t parameter = 0;  // of those that the rank holds
  std::uint64_t bit = 0;
};

class FlippingObserver final : public TrainingObserver {
 public:
  FlippingObserver(Executor& executor, const Flip& flip) : executor_(executor), flip_(flip) {}

  void iteration(const IterationReport& report) override {
    if (report.iteration != flip_.iteration) return;
    const std::vector<Parameter*> parameters = executor_.parameters();
    const TensorRef value = parameters[flip_.parameter % parameters.size()]->value;
    std::vector<std::byte> bytes(static_cast<std::size_t>(value.bytes()));
    executor_.backend().download(bytes.data(), value);
    bytes[flip_.bit / 8 % bytes.size()] ^= static_cast<std::byte>(1U << (flip_.bit % 8));
    executor_.backend().upload(value, bytes.data());
  }

 private:
  Executor& executor_;
  const Flip flip_;
};

class ReplicaCheck : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    config_.model.config.num_layers = 4;
    config_.model.config.num_attention_heads = 4;
    config_.train_iters = kUpdates;
    config_.output.check_replicas = 1;
    config_.output.eval_interval = 0;
    config_.output.eval_iters = 1;
  }

  // The error that all ranks end with; empty: none.
  std::string error_of(const TrainConfig& config, const std::optional<Flip>& flip) {
    return message_of<EnvironmentError>([&] {
      on_ranks(config, [&](Trainer& trainer, Communicator& world) {
        trainer.start();
        TrainingObserver quiet;
        std::optional<FlippingObserver> flipping;
        if (flip && flip->rank == world.rank()) flipping.emplace(trainer.executor(), *flip);
        trainer.run(flipping ? static_cast<TrainingObserver&>(*flipping) : quiet);
      });
    });
  }
};

TEST_F(ReplicaCheck, AnyLayoutKeepsItsReplicasEqual) {
  RandomSequence random({.seed = 3});
  for (int trial = 0; trial < trials(6); ++trial) {
    TrainConfig config = random_pipeline(config_, random);
    config.backend.bf16 = random.below(3) == 0;
    config.batch.global_batch_size = config.batch.micro_batch_size * config.layout.data_parallel * 2;
    EXPECT_EQ(error_of(config, {}), kNoError) << text_of_layout(config);
  }
}

TEST_F(ReplicaCheck, AFlippedBitOfACopyIsNamedByParameterAndRank) {
  RandomSequence random({.seed = 4});
  for (int trial = 0; trial < trials(8); ++trial) {
    TrainConfig config = config_;
    config.layout.tensor_parallel = 1 + static_cast<int>(random.below(2));
    config.layout.data_parallel = 3;
    config.layout.distributed_optimizer = random.below(2) == 0;
    config.batch.global_batch_size = config.batch.micro_batch_size * 3;
    const Flip flip{.iteration = 1 + static_cast<std::int64_t>(random.below(kUpdates)),
                    .rank = static_cast<int>(random.below(static_cast<std::uint64_t>(config.layout.mesh().ranks()))),
                    .parameter = random.below(1000),
                    .bit = random.next_u32()};
    const std::string error = error_of(config, flip);
    EXPECT_THAT(error,
                HasSubstr(fmt::format("after iteration {}, rank {} holds other bits of '", flip.iteration, flip.rank)));
    EXPECT_THAT(error, HasSubstr(fmt::format("equal after iteration {};", flip.iteration - 1)));
  }
}

TEST_F(ReplicaCheck, TheTiedEmbeddingOfBothEndsIsOneOfThem) {
  TrainConfig config = config_;
  config.layout.pipeline_parallel = 2;
  const std::string error = error_of(config, Flip{.iteration = 2, .rank = 0, .parameter = 0, .bit = 77});
  EXPECT_THAT(error, ::testing::ContainsRegex("rank . and rank . hold different bits of 'embedding.tokens.weight'\\."));
}

TEST_F(ReplicaCheck, WithoutItARunGoesOn) {
  TrainConfig config = config_;
  config.layout.data_parallel = 2;
  config.batch.global_batch_size = config.batch.micro_batch_size * 2;
  config.output.check_replicas = 0;
  EXPECT_EQ(error_of(config, Flip{.iteration = 1, .rank = 1, .parameter = 0, .bit = 0}), kNoError);
}

}  // namespace
}  // namespace teratron::testing

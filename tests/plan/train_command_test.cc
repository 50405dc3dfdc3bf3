// The command that is printed is read back to the same configuration.
#include "plan/train_command.h"

#include <gtest/gtest.h>

#include <utility>

#include "options/reading.h"
#include "plan/random_request.h"

namespace teratron::testing {
namespace {

using namespace plan;

// As `teratron train` reads its words.
TrainConfig read_back(const std::vector<std::string>& words) { return read_options<TrainConfig>(words); }

TEST(TrainCommand, IsReadBackToTheSameValues) {
  RandomSequence random({.seed = 41});
  const std::vector<std::string> presets = {"124M", "tiny", "8.3B", "bert-336M"};
  for (int trial = 0; trial < 60; ++trial) {
    PlanRequest request = random_request(random);
    TrainConfig& config = request.config;
    if (random.below(2) == 0) config.data_path = {"0.7", "a b", "0.3", "it's"};
    if (random.below(2) == 0) {
      config.model.preset = presets[random.below(presets.size())];
      FieldList fields = fields_of(config);
      fields.find("model")->when_set();
      if (config.model.config.kind == ModelKind::kBert) config.model.tokenizer = "tokenizer";
      if (random.below(2) == 0) config.model.config.num_layers = 6;
    }
    const std::vector<Layout> layouts = layouts_on(request.cluster.devices, config, {});
    if (layouts.empty()) continue;
    Layout layout = layouts[random.below(layouts.size())];
    if (layout.slicing.is_open()) layout.slicing = {"uniform:2"};
    const TrainConfig planned = with_layout(config, layout);
    SCOPED_TRACE(train_command(planned));
    ASSERT_TRUE(planned.faults().empty());
    EXPECT_EQ(to_toml(read_back(train_words(planned))), to_toml(planned));
  }
}

TEST(TrainCommand, QuotesWhatAShellWouldRead) {
  TrainConfig config;
  config.train_iters = 5;
  config.data_path = {"it's a corpus"};
  config.layout.pipeline_parallel = 2;
  EXPECT_EQ(train_command(config), "teratron train --train-iters 5 --pp 2 --data-path 'it'\\''s a corpus'");
  EXPECT_EQ(train_command(config, 1), "mpirun -n 2 " + train_command(config));
}

// A measured device is as fast in all precisions, since one is measured.
TEST(TrainCommand, TheBackEndIsTheOneThatMeasuredTheDevice) {
  Device device{.name = "d", .memory = 1e9, .peak_16 = 1e13, .peak_32 = 1e13, .memory_bandwidth = 1e11};
  const auto chosen = [&](bool precision_is_given = false) {
    TrainConfig config;
    choose_device_settings(config, device, precision_is_given);
    return std::pair(config.backend.kind, config.backend.bf16);
  };
  EXPECT_EQ(chosen(), std::pair(BackendKind::kCpu, false)) << "a user's file of processors names no back end";
  device.backend = "cuda";
  EXPECT_EQ(chosen(), std::pair(BackendKind::kCuda, false));
  device.peak_16 = 4e13;
  EXPECT_EQ(chosen(), std::pair(BackendKind::kCuda, true));
  EXPECT_EQ(chosen(true), std::pair(BackendKind::kCuda, false));
  device.backend.clear();
  EXPECT_EQ(chosen(), std::pair(BackendKind::kCuda, true)) << "a data sheet names none";
  device.backend = "cpu";
  EXPECT_EQ(chosen(), std::pair(BackendKind::kCpu, false));
}

TEST(TrainCommand, AdaptersHaveAFolderOfWeightsBesideThem) {
  TrainConfig config;
  config.data_path = {"corpus"};
  config.model.config.adapters.rank = 8;
  EXPECT_EQ(train_command(config), "teratron train --lora-rank 8 --data-path corpus --finetune model");
  config.output.finetune = "mine";
  EXPECT_EQ(train_command(config), "teratron train --lora-rank 8 --data-path corpus --finetune mine");
}

}  // namespace
}  // namespace teratron::testing

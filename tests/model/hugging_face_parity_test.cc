// GPT-2 against Hugging Face's (tests/golden/gpt2_tiny, made by tests/golden/make_gpt2_golden.py with the versions that
// expected.json names): logits, every gradient, and ten steps of PyTorch's AdamW.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/native/checkpoint.h"
#include "model/hugging_face_example.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/gpt2_tiny";

std::unique_ptr<Backend> cpu() { return make_cpu_backend(); }
std::unique_ptr<Backend> reference() { return make_reference_backend(DType::kF32); }

class HuggingFaceParity : public ::testing::TestWithParam<std::unique_ptr<Backend> (*)()> {
 protected:
  HuggingFaceParity() : backend_(GetParam()()), expected_(kGolden / "expected.safetensors") {
    checkpoint_ = import_from_hugging_face(kGolden, folder_ / "run");
    const auto inputs = nlohmann::json::parse(read_file(kGolden / "inputs.json"));
    for (const auto& row : inputs["inputs"]) ids_.insert(ids_.end(), row.begin(), row.end());
    for (const auto& row : inputs["targets"]) targets_.insert(targets_.end(), row.begin(), row.end());
    weights_.assign(ids_.size(), 1.0F / static_cast<float>(ids_.size()));
  }

  LanguageModel load(const ExecutorOptions& options) {
    ModelConfig config = read_checkpoint_info(checkpoint_).model;
    config.hidden_dropout = config.attention_dropout = 0;
    LanguageModel runner(*backend_, config, options);
    runner.allocate();
    runner.initialize(1);
    load_checkpoint(checkpoint_, config, runner.parameters(), *backend_, {.optimizer = false});
    return runner;
  }
  MicroBatch batch() const { return {.ids = ids_, .targets = targets_, .weights = weights_, .batch = 3, .tokens = 24}; }
  std::vector<float> expected(const std::string& name) const { return floats_of(expected_, name); }

  std::unique_ptr<Backend> backend_;
  SafetensorsFile expected_;
  const TemporaryFolder folder_;
  fs::path checkpoint_;
  std::vector<std::int32_t> ids_, targets_;
  std::vector<float> weights_;
};

TEST_P(HuggingFaceParity, LogitsAgree) {
  LanguageModel runner = load({.purpose = Purpose::kEvaluation, .tokens = 24});
  const std::vector<float> logits = expected("logits");
  const auto per_sequence = logits.size() / 3;
  std::vector<float> actual(per_sequence);
  for (std::size_t sequence = 0; sequence < 3; ++sequence) {
    runner.logits(std::span(ids_).subspan(sequence * 24, 24), 0, 24, actual);
    for (std::size_t i = 0; i < per_sequence; ++i) {
      ASSERT_NEAR(actual[i], logits[sequence * per_sequence + i], 1e-4) << "sequence " << sequence << " value " << i;
    }
  }
}

TEST_P(HuggingFaceParity, LossAndEveryGradientAgree) {
  LanguageModel runner = load({.batch = 3, .tokens = 24, .optimizer = oracles_optimizer()});
  const auto golden = nlohmann::json::parse(read_file(kGolden / "expected.json"));
  EXPECT_NEAR(runner.forward_backward(batch()).total(), golden["loss"].get<double>(), 1e-5);
  expect_gradients_agree(runner, expected_, {});
  EXPECT_EQ(runner.parameters().size(), 28U);  // 2 embeddings, 12 in each of 2 layers, 2 in the last norm
}

TEST_P(HuggingFaceParity, TenStepsOfAdamWHaveTheSameLossesAndNorms) {
  LanguageModel runner = load({.batch = 3, .tokens = 24, .optimizer = oracles_optimizer()});
  const auto golden = nlohmann::json::parse(read_file(kGolden / "expected.json"))["steps_float64"];
  ASSERT_EQ(golden["losses"].size(), 10U);
  expect_steps_agree(runner, golden, batch(), 1e-5, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(BackEnds, HuggingFaceParity, ::testing::Values(&cpu, &reference),
                         [](const auto& back_end) { return back_end.index == 0 ? "Cpu" : "Reference"; });

}  // namespace
}  // namespace teratron::testing

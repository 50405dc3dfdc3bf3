// Llama, Mistral, Qwen 2, Qwen 3 and GPT-NeoX against Hugging Face's (tests/golden/*_tiny, made by
// tests/golden/make_llama_golden.py with the versions that expected.json names): logits, every gradient, ten steps of
// PyTorch's AdamW, and greedy generation.
#include <gtest/gtest.h>

#include <algorithm>
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

constexpr std::int64_t kSequences = 3, kLength = 24;

// A golden model's name, and whether the reference computes.
class HuggingFaceFamilies : public ::testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
  HuggingFaceFamilies()
      : golden_(fs::path(TERATRON_SOURCE_DIR) / "tests/golden" / std::get<0>(GetParam())),
        backend_(std::get<1>(GetParam()) ? make_reference_backend(DType::kF32) : make_cpu_backend()),
        expected_(golden_ / "expected.safetensors"),
        values_(nlohmann::json::parse(read_file(golden_ / "expected.json"))),
        checkpoint_(import_from_hugging_face(golden_, folder_ / "run")) {
    const auto inputs = nlohmann::json::parse(read_file(golden_ / "inputs.json"));
    ids_ = flattened(inputs, "inputs");
    targets_ = flattened(inputs, "targets");
    weights_.assign(ids_.size(), 1.0F / static_cast<float>(ids_.size()));
  }

  LanguageModel load(const ExecutorOptions& options) {
    const ModelConfig config = read_checkpoint_info(checkpoint_).model;
    LanguageModel runner(*backend_, config, options);
    runner.allocate();
    runner.initialize(1);
    load_checkpoint(checkpoint_, config, runner.parameters(), *backend_, {.optimizer = false});
    return runner;
  }
  MicroBatch batch() const {
    return {.ids = ids_, .targets = targets_, .weights = weights_, .batch = kSequences, .tokens = kLength};
  }

  TemporaryFolder folder_;
  const fs::path golden_;
  std::unique_ptr<Backend> backend_;
  SafetensorsFile expected_;
  nlohmann::json values_;
  fs::path checkpoint_;
  std::vector<std::int32_t> ids_, targets_;
  std::vector<float> weights_;
};

TEST_P(HuggingFaceFamilies, LogitsAgree) {
  LanguageModel runner = load({.purpose = Purpose::kEvaluation, .tokens = kLength});
  const std::vector<float> logits = floats_of(expected_, "logits");
  const auto per_sequence = logits.size() / kSequences;
  std::vector<float> actual(per_sequence);
  for (std::size_t sequence = 0; sequence < kSequences; ++sequence) {
    runner.logits(std::span(ids_).subspan(sequence * kLength, kLength), 0, kLength, actual);
    for (std::size_t i = 0; i < per_sequence; ++i) {
      ASSERT_NEAR(actual[i], logits[sequence * per_sequence + i], 1e-4) << "sequence " << sequence << " value " << i;
    }
  }
}

TEST_P(HuggingFaceFamilies, LossAndEveryGradientAgree) {
  LanguageModel runner = load({.batch = kSequences, .tokens = kLength, .optimizer = oracles_optimizer()});
  EXPECT_NEAR(runner.forward_backward(batch()).total(), values_["loss"].get<double>(), 1e-5);
  expect_gradients_agree(runner, expected_, runner.config(), 1e-6);
}

TEST_P(HuggingFaceFamilies, TenStepsOfAdamWHaveTheSameLossesAndNorms) {
  LanguageModel runner = load({.batch = kSequences, .tokens = kLength, .optimizer = oracles_optimizer()});
  ASSERT_EQ(values_["steps_float64"]["losses"].size(), 10U);
  expect_steps_agree(runner, values_["steps_float64"], batch(), 1e-5, 1e-4);
}

TEST_P(HuggingFaceFamilies, GreedyGenerationIsTheSame) {
  LanguageModel runner = load({.purpose = Purpose::kGeneration, .tokens = 8});
  const auto prompt = values_["prompt"].get<std::vector<std::int32_t>>();
  const auto continued = values_["continued"].get<std::vector<std::int32_t>>();
  std::vector<float> logits(static_cast<std::size_t>(runner.config().vocab_size));
  runner.logits(prompt, 0, 1, logits);
  auto position = static_cast<std::int32_t>(prompt.size());
  std::vector<std::int32_t> generated;
  while (generated.size() < continued.size()) {
    generated.push_back(static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin()));
    runner.next_logits(std::span(&generated.back(), 1), std::span(&position, 1), logits);
    ++position;
  }
  EXPECT_EQ(generated, continued);
}

TEST_P(HuggingFaceFamilies, AFolderThatGoesThereAndBackHasTheSameWeights) {
  export_to_hugging_face(folder_ / "run", folder_ / "hf");
  const SafetensorsFile before(golden_ / "model.safetensors"), after(folder_ / "hf" / "model.safetensors");
  for (const SafetensorsEntry& entry : before.tensors()) {
    EXPECT_EQ(floats_of(after, entry.name), floats_of(before, entry.name)) << entry.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HuggingFaceFamilies,
                         ::testing::Combine(::testing::Values("llama_tiny", "mistral_tiny", "qwen2_tiny", "qwen3_tiny",
                                                              "gpt_neox_tiny"),
                                            ::testing::Bool()),
                         [](const auto& one) {
                           std::string name(std::get<0>(one.param));
                           std::erase(name, '_');
                           return name + (std::get<1>(one.param) ? "Reference" : "Cpu");
                         });

}  // namespace
}  // namespace teratron::testing

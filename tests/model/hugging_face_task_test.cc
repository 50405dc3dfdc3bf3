// BERT, RoBERTa and DistilBERT with the head of a task against Hugging Face's classes: logits, losses, every gradient,
// and three steps of PyTorch's AdamW. An example of each is in the repository (tests/golden/bert_classification,
// bert_choice, bert_spans, bert_tokens, ..); where there is Python, more are made, of random shapes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/initial_weights.h"
#include "model/encoder.h"
#include "model/hugging_face_example.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class TaskExample {
 public:
  explicit TaskExample(const fs::path& folder)
      : folder_(folder), expected_(folder / "expected.safetensors"), config_(find_weights(folder).model) {
    const Json inputs = Json::parse(read_file(folder / "inputs.json"));
    ids_ = flattened(inputs, "ids");
    token_types_ = flattened(inputs, "token_types");
    inputs["lengths"].get_to(lengths_);
    labels_ = flattened(inputs, "labels");
    const auto known = std::ranges::count_if(labels_, [](std::int32_t label) { return label >= 0; });
    for (std::int32_t& label : labels_) {
      label_weights_.push_back(label < 0 ? 0 : 1.0F / static_cast<float>(known));
      label = std::max(label, 0);
    }
  }

  void expect_same_outputs(Backend& backend) const {
    Bert model(config_);
    Executor runner(backend, model, {.purpose = Purpose::kEvaluation, .batch = batch(), .tokens = tokens()});
    load(runner);
    const std::vector<float> golden = floats_of(expected_, "outputs");
    std::vector<float> actual(golden.size());
    task_outputs(runner, model, micro_batch(), actual);
    const auto t = static_cast<std::size_t>(tokens());
    for (std::size_t i = 0; i < golden.size(); ++i) {
      const auto columns = static_cast<std::size_t>(config_.task_logits());
      const bool is_padding =
          (config_.head == ModelHead::kSpans && static_cast<std::int32_t>(i % t) >= lengths_[i / t / 2]) ||
          (config_.head == ModelHead::kTokens &&
           static_cast<std::int32_t>(i / columns % t) >= lengths_[i / columns / t]);
      if (is_padding) continue;
      EXPECT_NEAR(actual[i], golden[i], 1e-4) << "value " << i;
    }
  }

  void expect_same_gradients(Backend& backend) const {
    Bert model(config_);
    Executor runner(backend, model, {.batch = batch(), .tokens = tokens()});
    load(runner);
    const double loss = steps()["losses"][0].get<double>();
    EXPECT_NEAR(runner.forward_backward(micro_batch()).total(), loss, 1e-4 * loss);
    expect_gradients_agree(runner, expected_, config_, 1e-6);  // the biases' of spans cancel
  }

  void expect_same_steps(Backend& backend) const {
    Bert model(config_);
    Executor runner(backend, model, {.batch = batch(), .tokens = tokens(), .optimizer = oracles_optimizer()});
    load(runner);
    runner.clear_slots();
    expect_steps_agree(runner, steps(), micro_batch(), 1e-4, 1e-3);
  }

 private:
  Json steps() const { return Json::parse(read_file(folder_ / "expected.json"))["steps_float64"]; }
  std::int64_t batch() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size() / lengths_.size()); }
  MicroBatch micro_batch() const {
    MicroBatch all = {.ids = ids_,
                      .token_types = token_types_,
                      .key_lengths = lengths_,
                      .labels = labels_,
                      .label_weights = label_weights_,
                      .batch = batch(),
                      .tokens = tokens()};
    if (config_.head == ModelHead::kTokens) {
      all.targets = std::exchange(all.labels, {});
      all.weights = std::exchange(all.label_weights, {});
    }
    return all;
  }
  void load(Executor& executor) const {
    executor.allocate();
    EXPECT_TRUE(load_weights(folder_, config_, executor.all_parameters(), executor.backend()).empty());
  }

  fs::path folder_;
  SafetensorsFile expected_;
  ModelConfig config_;
  std::vector<std::int32_t> ids_, token_types_, lengths_, labels_;
  std::vector<float> label_weights_;
};

constexpr const char* kExamples[] = {
    "bert_classification",      "bert_choice", "bert_spans", "bert_tokens", "roberta_classification",
    "distilbert_classification"};

class HuggingFaceTask : public ::testing::TestWithParam<const char*> {
 protected:
  const TaskExample golden_{fs::path(TERATRON_SOURCE_DIR) / "tests/golden" / GetParam()};
  const std::unique_ptr<Backend> cpu_ = make_cpu_backend(), reference_ = make_reference_backend(DType::kF32);
};

TEST_P(HuggingFaceTask, OutputsAgree) {
  golden_.expect_same_outputs(*cpu_);
  golden_.expect_same_outputs(*reference_);
}

TEST_P(HuggingFaceTask, LossAndEveryGradientAgree) {
  golden_.expect_same_gradients(*cpu_);
  golden_.expect_same_gradients(*reference_);
}

TEST_P(HuggingFaceTask, ThreeStepsOfAdamWHaveTheSameLossesAndNorms) {
  golden_.expect_same_steps(*cpu_);
  golden_.expect_same_steps(*reference_);
}

INSTANTIATE_TEST_SUITE_P(Heads, HuggingFaceTask, ::testing::ValuesIn(kExamples),
                         [](const auto& head) { return std::string(head.param); });

TEST(HuggingFaceTaskOracle, RandomModelsAgreeInAllOfIt) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {folder.path().string()};
  for (int seed = 100; seed < 104; ++seed) arguments.push_back(fmt::format("{}", seed));
  const int status = run_oracle("../golden/make_bert_task_golden.py", arguments, folder / "log");
  ASSERT_EQ(status, 0) << read_file(folder / "log");
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    for (const char* head :
         {"bert-classification", "bert-choice", "bert-spans", "bert-tokens", "roberta-classification", "roberta-choice",
          "roberta-spans", "roberta-tokens", "distilbert-classification", "distilbert-choice", "distilbert-spans",
          "distilbert-tokens"}) {
      const std::string name = fmt::format("{}-{}", arguments[i], head);
      SCOPED_TRACE(name);
      const TaskExample example(folder / name);
      example.expect_same_outputs(*backend);
      example.expect_same_gradients(*backend);
      example.expect_same_steps(*backend);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace teratron::testing

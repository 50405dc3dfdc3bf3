// BERT, RoBERTa and DistilBERT against Hugging Face's: hidden states, losses, every gradient, and ten steps of
// PyTorch's AdamW. An example of each is in the repository (tests/golden/bert_tiny, ..); where there is Python, more
// are made, of random shapes.
#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/initial_weights.h"
#include "comm/launch.h"
#include "model/encoder.h"
#include "model/hugging_face_example.h"
#include "nn/host_values.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class BertExample {
 public:
  explicit BertExample(const fs::path& folder)
      : folder_(folder), expected_(folder / "expected.safetensors"), config_(find_weights(folder).model) {
    const Json inputs = Json::parse(read_file(folder / "inputs.json"));
    ids_ = flattened(inputs, "ids");
    token_types_ = flattened(inputs, "token_types");
    targets_ = flattened(inputs, "targets");
    inputs["lengths"].get_to(lengths_);
    inputs["labels"].get_to(labels_);
    const auto count = std::ranges::count_if(targets_, [](std::int32_t target) { return target >= 0; });
    for (std::int32_t& target : targets_) {
      weights_.push_back(target >= 0 ? 1.0F / static_cast<float>(count) : 0.0F);
      target = std::max(target, 0);
    }
    label_weights_.assign(labels_.size(), 1.0F / static_cast<float>(labels_.size()));
  }

  void expect_same_vectors(Backend& backend, const std::shared_ptr<Mesh>& mesh = nullptr) const {
    Encoder encoder(backend, config_, {.purpose = Purpose::kEvaluation, .batch = batch(), .tokens = tokens()}, mesh);
    load(encoder);
    const std::vector<float> hidden = floats_of(expected_, "hidden");
    std::vector<float> actual(hidden.size());
    encoder.encode(micro_batch(), actual);
    for_each_value([&](std::size_t i) { EXPECT_NEAR(actual[i], hidden[i], 1e-4) << "value " << i; });

    if ((mesh && mesh->pipeline->size() > 1) || !config_.has_pooler()) return;  // it is on the last stage alone
    const std::vector<float> pooled = floats_of(expected_, "pooled");
    std::vector<float> from_pooler(pooled.size());
    encoder.forward(micro_batch(), [&](const EndCall& call, TensorRef x) {
      download_floats(backend, encoder.model().pooled(call, encoder.model().encoded(call, x)), from_pooler);
    });
    for (std::size_t i = 0; i < pooled.size(); ++i) EXPECT_NEAR(from_pooler[i], pooled[i], 1e-4) << "value " << i;
  }

  // The vectors of texts, from their tokens'.
  void expect_pooled_vectors(Backend& backend) const {
    Encoder encoder(backend, config_, {.purpose = Purpose::kEvaluation, .batch = batch(), .tokens = tokens()});
    load(encoder);
    const std::vector<float> hidden = floats_of(expected_, "hidden");
    const auto size = static_cast<std::size_t>(config_.hidden_size), t = static_cast<std::size_t>(tokens());
    std::vector<float> vectors(lengths_.size() * size);
    for (const Pooling pooling : {Pooling::kMean, Pooling::kCls}) {
      encoder.embed(micro_batch(), pooling, vectors);
      for (std::size_t i = 0; i < vectors.size(); ++i) {
        const auto read = pooling == Pooling::kCls ? std::size_t{1} : static_cast<std::size_t>(lengths_[i / size]);
        double sum = 0;
        for (std::size_t token = 0; token < read; ++token) sum += hidden[(i / size * t + token) * size + i % size];
        EXPECT_NEAR(vectors[i], sum / static_cast<double>(read), 1e-4) << "value " << i;
      }
    }
  }

  void expect_same_losses_and_gradients(Backend& backend) const {
    Bert model(config_);
    Executor runner(backend, model, {.batch = batch(), .tokens = tokens()});
    load(runner);
    const LossSums losses = runner.forward_backward(micro_batch());
    expect_same_losses(losses);
    expect_gradients_agree(runner, expected_, config_);
  }

  // Evaluation of one rank of a layout, without gradients.
  void expect_same_evaluation(Backend& backend, const std::shared_ptr<Mesh>& mesh) const {
    Bert model(config_, mesh->coordinates().tensor);
    Executor runner(backend, model, {.purpose = Purpose::kEvaluation, .batch = batch(), .tokens = tokens()}, mesh);
    load(runner);
    expect_same_losses(runner.evaluate(micro_batch()));
  }

  void expect_same_steps(Backend& backend) const {
    Bert model(config_);
    Executor runner(backend, model, {.batch = batch(), .tokens = tokens(), .optimizer = oracles_optimizer()});
    load(runner);
    runner.clear_slots();
    const Json golden = Json::parse(read_file(folder_ / "expected.json"))["steps_float64"];
    expect_steps_agree(runner, golden, micro_batch(), 1e-4, 1e-3);
  }

 private:
  void expect_same_losses(const LossSums& losses) const {
    const Json golden = Json::parse(read_file(folder_ / "expected.json"));
    const double masked = golden["masked_loss"].get<double>();
    EXPECT_NEAR(losses.of_kind[0], masked, 1e-4 * masked);
    ASSERT_EQ(losses.of_kind.size() > 1, golden.contains("order_loss"));
    if (!golden.contains("order_loss")) return;
    const double order = golden["order_loss"].get<double>();
    EXPECT_NEAR(losses.of_kind[1], order, 1e-4 * order);
  }
  std::int64_t batch() const { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size() / lengths_.size()); }
  MicroBatch micro_batch() const {
    return {.ids = ids_,
            .token_types = token_types_,
            .key_lengths = lengths_,
            .targets = targets_,
            .weights = weights_,
            .labels = labels_,
            .label_weights = label_weights_,
            .batch = batch(),
            .tokens = tokens()};
  }
  void load(Executor& executor) const {
    executor.allocate();
    load_from_hugging_face(folder_, config_, executor.all_parameters(), executor.backend());
  }
  // Visits the values of the tokens' vectors, but not those of padding.
  void for_each_value(const std::function<void(std::size_t)>& use) const {
    const auto size = static_cast<std::size_t>(config_.hidden_size), t = static_cast<std::size_t>(tokens());
    for (std::size_t i = 0; i < ids_.size() * size; ++i) {
      if (static_cast<std::int32_t>(i / size % t) < lengths_[i / size / t]) use(i);
    }
  }

  fs::path folder_;
  SafetensorsFile expected_;
  ModelConfig config_;
  std::vector<std::int32_t> ids_, token_types_, lengths_, targets_, labels_;
  std::vector<float> weights_, label_weights_;
};

using BertCase = std::tuple<std::unique_ptr<Backend> (*)(), const char*>;

class HuggingFaceBert : public ::testing::TestWithParam<BertCase> {
 protected:
  static std::unique_ptr<Backend> make_backend() { return std::get<0>(GetParam())(); }
  const std::unique_ptr<Backend> backend_ = make_backend();
  const BertExample golden_{fs::path(TERATRON_SOURCE_DIR) / "tests/golden" /
                            fmt::format("{}_tiny", std::get<1>(GetParam()))};
};

TEST_P(HuggingFaceBert, VectorsOfTokensAgree) { golden_.expect_same_vectors(*backend_); }
TEST_P(HuggingFaceBert, VectorsOfTextsAgree) { golden_.expect_pooled_vectors(*backend_); }
TEST_P(HuggingFaceBert, LossesAndEveryGradientAgree) { golden_.expect_same_losses_and_gradients(*backend_); }
TEST_P(HuggingFaceBert, TenStepsOfAdamWHaveTheSameLossesAndNorms) { golden_.expect_same_steps(*backend_); }

TEST_P(HuggingFaceBert, EveryLayoutReadsItsPartsOfTheFiles) {
  for (const MeshShape shape :
       {MeshShape{.tensor = 2}, MeshShape{.pipeline = 2}, MeshShape{.tensor = 2, .pipeline = 2}}) {
    run_ranks({}, shape.ranks(), [&](Communicator& world) {
      const std::unique_ptr<Backend> backend = make_backend();
      const auto mesh = std::make_shared<Mesh>(make_mesh(world, shape));
      golden_.expect_same_vectors(*backend, mesh);
      golden_.expect_same_evaluation(*backend, mesh);
    });
  }
}

std::unique_ptr<Backend> bert_cpu() { return make_cpu_backend(); }
std::unique_ptr<Backend> bert_reference() { return make_reference_backend(DType::kF32); }
INSTANTIATE_TEST_SUITE_P(BackEnds, HuggingFaceBert,
                         ::testing::Combine(::testing::Values(&bert_cpu, &bert_reference),
                                            ::testing::Values("bert", "roberta", "distilbert")),
                         [](const auto& one) {
                           return std::string(std::get<1>(one.param)) + (one.index < 3 ? "Cpu" : "Reference");
                         });

TEST(HuggingFaceBertOracle, RandomModelsAgreeInAllOfIt) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  std::vector<std::string> arguments = {folder.path().string()};
  for (int seed = 100; seed < 105; ++seed) arguments.push_back(fmt::format("{}", seed));
  const int status = run_oracle("../golden/make_bert_golden.py", arguments, folder / "log");
  ASSERT_EQ(status, 0) << read_file(folder / "log");
  for (std::size_t i = 1; i < arguments.size() && !HasFailure(); ++i) {
    for (const char* kind : {"bert", "roberta", "distilbert"}) {
      const std::string name = fmt::format("{}-{}", kind, arguments[i]);
      SCOPED_TRACE(name);
      const BertExample example(folder / name);
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      example.expect_same_vectors(*backend);
      example.expect_pooled_vectors(*backend);
      example.expect_same_losses_and_gradients(*backend);
      example.expect_same_steps(*backend);
    }
  }
}

// 22 million weights that were trained, on texts of 3 to 303 tokens.
TEST(HuggingFaceBertOracle, APublishedSentenceTransformerHasTheVectorsOfTransformers) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  const int status = run_oracle("published_bert.py", {(folder / "model").string()}, folder / "log");
  const std::string said = read_file(folder / "log");
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << said;
  ASSERT_EQ(status, 0) << said;
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const BertExample example(folder / "model");
  example.expect_same_vectors(*backend);
  example.expect_pooled_vectors(*backend);
}

}  // namespace
}  // namespace teratron::testing

// Random small models of Llama, Mistral, Qwen 2, Qwen 3 and GPT-NeoX in random layouts, beside transformers
// (tests/oracle/families_as_transformers.py): logits, losses, every gradient, ten of AdamW's updates, greedy text.
// Three models of each family, with TERATRON_WHOLE_DATA=1 forty; others with TERATRON_SEED. Needs the environment of
// scripts/oracle-env.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/model_folder.h"
#include "model/hugging_face_example.h"
#include "model/random_layouts.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kUpdates = 10, kNewTokens = 200;
// AdamW's. Gradients that are zero but for rounding (of queries that see one key) must not become steps.
constexpr double kEpsilon = 1e-8, kEpsilonOfFloat = 1e-4;
constexpr const char* kFamilies[] = {"llama", "mistral", "qwen2", "qwen3", "gpt_neox"};  // of seeds 0, 1, .., modulo 5

struct Case {
  Study study;
  Layout layout;
  std::string name, family;

  std::string text() const { return study.text() + "; " + layout.text(); }
  // One copy of the model, for evaluation and generation: every stage has as many layers.
  MeshShape model_mesh() const {
    const bool is_even = study.config.num_layers % layout.mesh.pipeline == 0;
    return {.tensor = layout.mesh.tensor, .pipeline = is_even ? layout.mesh.pipeline : 1};
  }
};

// Shapes that a random layout divides; everything else about the model is drawn by transformers' side.
Case make_case(std::uint32_t seed) {
  Case one;
  if (seed / 5 % 4 == 0) {
    RandomStudy random(seed);
    one.layout = random.layout();
    one.study = random.study;
  } else {
    RandomPipeline random(seed);
    if (seed / 5 % 4 == 1) random.cut_jointly();
    one.layout = random.layout;
    one.study = random.study;
  }
  Study& study = one.study;
  study.become_llama(one.layout.mesh);
  study.bf16_moments = false;
  study.steps = kUpdates;
  study.learning_rate = 1e-3;
  ModelConfig& config = study.config;
  config.vocab_size = std::max<std::int64_t>(config.vocab_size, 7);
  config.max_position_embeddings = std::max(config.max_position_embeddings, study.tokens);
  // transformers wants a multiple of the heads. A norm of two elements has gradients too steep for fp32.
  std::int64_t head = config.kind == ModelKind::kGptNeox ? config.head_dim : 2 + seed % 3;
  while (head * config.num_attention_heads < 8) head *= 2;
  config.hidden_size = head * config.num_attention_heads;
  if (config.kind == ModelKind::kGptNeox) {
    config.num_key_value_heads = config.num_attention_heads;
    config.head_dim = 0;
  }
  one.family = kFamilies[seed % std::size(kFamilies)];
  one.name = fmt::format("{}-{}", one.family, seed);
  return one;
}

Json request_for(const Case& one) {
  const ModelConfig& config = one.study.config;
  return {{"name", one.name},
          {"family", one.family},
          {"seed", one.study.seed},
          {"sizes",
           {{"layers", config.num_layers},
            {"hidden", config.hidden_size},
            {"heads", config.num_attention_heads},
            {"key_heads", config.key_value_heads()},
            {"head", config.head_size()},
            {"ffn", config.ffn_hidden_size()},
            {"vocabulary", config.vocab_size},
            {"positions", config.max_position_embeddings}}}};
}

Json rows_of(const std::vector<std::int32_t>& values, std::int64_t columns) {
  Json rows = Json::array();
  for (auto row = values.begin(); row != values.end(); row += columns) {
    rows.push_back(std::vector<std::int32_t>(row, row + columns));
  }
  return rows;
}

Json training_request(const Case& one) {
  Json request = request_for(one);
  const AdamWSettings adamw{.weight_decay = 0.1};  // as Study makes them
  request["adamw"] = {{"learning_rate", one.study.learning_rate},
                      {"beta1", adamw.beta1},
                      {"beta2", adamw.beta2},
                      {"epsilon", {{"double", kEpsilon}, {"fp32", kEpsilonOfFloat}}},
                      {"weight_decay", adamw.weight_decay},
                      {"clip", adamw.clip}};
  for (int step = 0; step < one.study.steps; ++step) {
    const RandomBatch batch = one.study.batch_of(step);
    request["batches"].push_back({{"inputs", rows_of(batch.ids, batch.tokens)},
                                  {"targets", rows_of(batch.targets, batch.tokens)},
                                  {"weight", double{batch.weights[0]}}});
  }
  return request;
}

std::vector<std::int32_t> prompt_of(const Case& one) {
  return RandomBatch(1, 5, one.study.config.vocab_size, one.study.seed).ids;
}

double norm_of_difference(const std::vector<double>& one, const std::vector<double>& other) {
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) sum += std::pow(one[i] - other[i], 2);
  return std::sqrt(sum);
}

// How far ours is from theirs: the largest difference over the largest value.
double worst_of(const std::vector<double>& actual, const std::vector<double>& expected) {
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(actual[i] - expected[i]));
  }
  return largest > 0 ? worst / largest : worst;
}

class FamiliesOracle : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
    const bool whole = std::getenv("TERATRON_WHOLE_DATA") != nullptr;
    const char* const other = std::getenv("TERATRON_SEED");
    const std::uint32_t first = other == nullptr ? 1 : static_cast<std::uint32_t>(std::stoul(other)) % 1000000 + 1;
    for (std::uint32_t number = first; number < first + (whole ? 40U : 3U); ++number) {
      cases_.push_back(make_case(5 * number + static_cast<std::uint32_t>(GetParam())));
    }
  }

  void ask(const Json& requests) {
    put_file("cases.json", requests.dump());
    ASSERT_EQ(run_oracle("families_as_transformers.py", {folder_.path().string()}, folder_ / "log"), 0)
        << read_file(folder_ / "log");
  }
  void put_file(const std::string& name, const std::string& content) { write_file_atomically(folder_ / name, content); }
  // The model as transformers saved it, with what config.json cannot say.
  void take_config(Case& one) const {
    const std::int64_t divisor = one.study.config.make_vocab_size_divisible_by;
    one.study.config = HuggingFaceFolder(folder_ / one.name).model();
    one.study.config.make_vocab_size_divisible_by = divisor;
  }
  std::function<void(Executor&)> taking_weights(const Case& one) const {
    return [path = folder_ / one.name, config = one.study.config](Executor& runner) {
      load_from_hugging_face(path, config, runner.parameters(), runner.backend());
    };
  }
  Json expected(const Case& one) const { return Json::parse(read_file(folder_ / one.name / "expected.json")); }
  // The values of every parameter, one after the other by our names, as WholeWeights has them.
  std::vector<double> golden(const Case& one, const std::string& kind) const {
    const HuggingFaceFolder model(folder_ / one.name);
    const SafetensorsFile file(folder_ / one.name / "expected.safetensors");
    std::map<std::string, std::vector<double>> by_name;
    for (const Parameter& parameter : model.parameters()) {
      by_name[parameter.name] = golden_values(file, kind, model.model(), parameter);
    }
    return joined(by_name);
  }
  static std::vector<double> joined(const std::map<std::string, std::vector<double>>& by_name) {
    std::vector<double> all;
    for (const auto& [name, values] : by_name) all.insert(all.end(), values.begin(), values.end());
    return all;
  }

  void expect_logits(const Case& one, const MakeBackend& make_backend, double tolerance);
  Result train_in_layout(const Case& one, const MakeBackend& make_backend, std::vector<double>& gradients) const;
  void expect_double(const Case& one);
  void expect_single(Case one);

  TemporaryFolder folder_;
  std::vector<Case> cases_;
  std::map<std::string, double> worst_;

  void keep_worst(const std::string& what, double value) { worst_[what] = std::max(worst_[what], value); }
};

// Our logits are handed out in fp32.
void FamiliesOracle::expect_logits(const Case& one, const MakeBackend& make_backend, double tolerance) {
  const SafetensorsFile file(folder_ / one.name / "expected.safetensors");
  const std::vector<double> theirs = doubles_of(file, "first.logits");
  const RandomBatch batch = one.study.batch_of(0);
  std::vector<double> ours;
  run_ranks({}, one.model_mesh().ranks(), [&](Communicator& world) {
    const std::unique_ptr<Backend> backend = make_backend();
    LanguageModel runner(*backend, one.study.config, {.purpose = Purpose::kEvaluation, .tokens = batch.tokens},
                         std::make_shared<Mesh>(make_mesh(world, one.model_mesh())));
    runner.allocate();
    runner.initialize(1);
    taking_weights(one)(runner);
    for (std::int64_t sequence = 0; sequence < batch.batch; ++sequence) {
      std::vector<float> logits(static_cast<std::size_t>(batch.tokens * one.study.config.vocab_size));
      runner.logits(batch.part(sequence, 1).ids, 0, batch.tokens, logits);
      if (world.rank() == 0) ours.insert(ours.end(), logits.begin(), logits.end());
    }
  });
  expect_near(ours, theirs, tolerance, one.text() + ": logits");
}

Result FamiliesOracle::train_in_layout(const Case& one, const MakeBackend& make_backend,
                                       std::vector<double>& gradients) const {
  Case first = one;  // a sharded optimizer has the gradients of its share
  first.layout.shard_optimizer = false;
  first.study.steps = 1;
  first.study.take_weights = taking_weights(one);
  WholeWeights collected;
  first.study.before_update = [&](Executor& runner) { collected.add_gradients(runner); };
  train(first.study, first.layout, make_backend);
  gradients = collected.values();
  Study study = one.study;
  study.take_weights = taking_weights(one);
  return train(study, one.layout, make_backend);
}

void FamiliesOracle::expect_double(const Case& one) {
  constexpr double kExact = 1e-9;
  const MakeBackend make = [] { return make_reference_backend(DType::kF64); };
  expect_logits(one, make, 1e-7);
  const Json values = expected(one)["double"];
  std::vector<double> gradients;
  const Result ours = train_in_layout(one, make, gradients);
  const Result theirs{values["losses"], values["norms"], golden(one, "double")};
  expect_near(gradients, golden(one, "grad"), kExact, one.text() + ": gradients");
  expect_same(ours, theirs, kExact, one.text());
  keep_worst("double losses", worst_of(ours.losses, theirs.losses));
  keep_worst("double gradients", worst_of(gradients, golden(one, "grad")));
  keep_worst("double weights", worst_of(ours.weights, theirs.weights));
}

void FamiliesOracle::expect_single(Case one) {
  one.study.epsilon = kEpsilonOfFloat;
  constexpr double kOfMovement = 1e-4;
  const MakeBackend make = [] { return make_cpu_backend(); };
  expect_logits(one, make, 1e-5);
  const Json values = expected(one)["fp32"];
  std::vector<double> gradients;
  const Result ours = train_in_layout(one, make, gradients);
  const std::vector<double> theirs = golden(one, "grad");
  EXPECT_LE(norm_of_difference(gradients, theirs), 1e-4 * norm_of_difference(theirs, std::vector(theirs.size(), 0.0)))
      << one.text();
  expect_near(ours.losses, values["losses"], 1e-5, one.text() + ": losses");
  expect_near(ours.norms, values["norms"], 1e-4, one.text() + ": gradient norms");
  const double movement = values["movement"], away = norm_of_difference(ours.weights, golden(one, "fp32"));
  EXPECT_LE(away, kOfMovement * movement) << one.text();
  keep_worst("fp32 of the movement", away / movement);
  keep_worst("transformers' fp32", values["fp32_from_double"].get<double>() / movement);
}

TEST_P(FamiliesOracle, LogitsGradientsAndTenUpdatesAreThoseOfTransformersInAnyLayout) {
  Json requests = Json::array();
  for (const Case& one : cases_) requests.push_back(training_request(one));
  ASSERT_NO_FATAL_FAILURE(ask(requests));
  for (Case& one : cases_) {
    ASSERT_NO_THROW(take_config(one)) << one.text();
    expect_double(one);
    expect_single(one);
  }
  for (const auto& [what, value] : worst_) fmt::print("{}: {} to {:.1e}\n", kFamilies[GetParam()], what, value);
}

class GreedyOracle : public FamiliesOracle {};

TEST_P(GreedyOracle, TextOfTwoHundredTokensIsTransformersOwn) {
  cases_.resize(std::min<std::size_t>(cases_.size(), 8));
  Json requests = Json::array();
  for (Case& one : cases_) {
    one.study.config.vocab_size = 50;
    one.study.config.max_position_embeddings = 256;
    requests.push_back(request_for(one));
    requests.back()["prompt"] = prompt_of(one);
    requests.back()["new_tokens"] = kNewTokens;
  }
  ASSERT_NO_FATAL_FAILURE(ask(requests));
  for (Case& one : cases_) {
    ASSERT_NO_THROW(take_config(one)) << one.text();
    const std::vector<std::int32_t> prompt = prompt_of(one);
    std::vector<std::int32_t> generated;
    run_ranks({}, one.model_mesh().ranks(), [&](Communicator& world) {
      const std::unique_ptr<Backend> backend = make_cpu_backend();
      LanguageModel runner(*backend, one.study.config, {.purpose = Purpose::kGeneration, .tokens = 8},
                           std::make_shared<Mesh>(make_mesh(world, one.model_mesh())));
      runner.allocate();
      runner.initialize(1);
      taking_weights(one)(runner);
      std::vector<float> logits(static_cast<std::size_t>(one.study.config.vocab_size));
      runner.logits(prompt, 0, 1, logits);
      for (auto position = static_cast<std::int32_t>(prompt.size()); position < std::ssize(prompt) + kNewTokens;
           ++position) {
        const auto next = static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
        if (world.rank() == 0) generated.push_back(next);
        runner.next_logits(std::span(&next, 1), std::span(&position, 1), logits);
      }
    });
    EXPECT_EQ(generated, expected(one)["continued"].get<std::vector<std::int32_t>>()) << one.text();
  }
}

const auto kEveryFamily = ::testing::Range(0, static_cast<int>(std::size(kFamilies)));
std::string family_name(const ::testing::TestParamInfo<int>& one) {
  std::string name(kFamilies[one.param]);
  std::erase(name, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, FamiliesOracle, kEveryFamily, family_name);
INSTANTIATE_TEST_SUITE_P(All, GreedyOracle, kEveryFamily, family_name);

}  // namespace
}  // namespace teratron::testing

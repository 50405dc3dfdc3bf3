// Documents that share a sample (ExecutorOptions::first_keys and position_ids): against PyTorch with an explicit mask,
// against each document alone, and the same in every layout.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "base/trials.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/mapping.h"
#include "checkpoint/native/checkpoint.h"
#include "model/derivative_check.h"
#include "model/random_layouts.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kTinyGpt2 = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/gpt2_tiny";

std::vector<std::int32_t> joined_rows(const nlohmann::json& rows) {
  std::vector<std::int32_t> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

// A gradient in the order in which Hugging Face stores the parameter, without the rows that pad the vocabulary.
std::vector<double> as_stored(const Parameter& parameter, const std::vector<double>& gradient) {
  const HuggingFaceTensor there = hugging_face_tensors(ModelConfig(), parameter).parts.front();
  if (there.transposed[0] == 1) {
    std::int64_t count = 1;
    for (const std::int64_t size : there.shape) count *= size;
    return {gradient.begin(), gradient.begin() + count};
  }
  std::vector<double> stored;
  const auto rows = static_cast<std::size_t>(there.shape[0]), columns = static_cast<std::size_t>(there.shape[1]);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) stored.push_back(gradient[column * rows + row]);
  }
  return stored;
}

// Both compute in double; sums of thousands of products of large random weights keep twelve digits.
TEST(Documents, HaveTheLossAndGradientsOfPyTorchWithAnExplicitMask) {
  const TemporaryFolder folder;
  const fs::path checkpoint = import_from_hugging_face(kTinyGpt2, folder / "run");
  const auto golden = nlohmann::json::parse(read_file(kTinyGpt2 / "documents.json"));
  const std::vector<std::int32_t> ids = joined_rows(golden["inputs"]), targets = joined_rows(golden["targets"]);
  std::vector<std::int32_t> first_keys, position_ids;
  std::vector<float> weights;
  for (const std::int32_t id : ids) weights.push_back(id == 130 ? 0.0F : 1.0F);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto t = static_cast<std::int32_t>(i % 24);
    first_keys.push_back(t == 0 || ids[i - 1] == 130 ? t : first_keys.back());
    position_ids.push_back(t - first_keys.back());
  }
  ModelConfig config = read_checkpoint_info(checkpoint).model;
  config.hidden_dropout = config.attention_dropout = 0;
  const auto backend = make_reference_backend(DType::kF64);
  LanguageModel model(*backend, config, {.batch = 3, .tokens = 24, .first_keys = true, .position_ids = true});
  model.allocate();
  model.initialize(1);
  load_checkpoint(checkpoint, config, model.parameters(), *backend, {.optimizer = false});
  const double sum = model
                         .forward_backward(MicroBatch{.ids = ids,
                                                      .first_keys = first_keys,
                                                      .position_ids = position_ids,
                                                      .targets = targets,
                                                      .weights = weights,
                                                      .batch = 3,
                                                      .tokens = 24})
                         .total();
  EXPECT_NEAR(sum / total, golden["loss"].get<double>(), 1e-12 * sum / total);
  for (const Parameter* parameter : model.parameters()) {
    const std::string name = hugging_face_tensors(ModelConfig(), *parameter).parts.front().name;
    const std::vector<double> gradient = as_stored(*parameter, values_of(*backend, parameter->gradient));
    double squares = 0, wave = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      squares += gradient[i] * gradient[i];
      wave += gradient[i] * std::cos(0.7 * static_cast<double>(i) + 1);
    }
    const double norm = golden["gradients"][name][0].get<double>();
    EXPECT_NEAR(std::sqrt(squares) / total, norm, 1e-11 * norm) << name;
    EXPECT_NEAR(wave / total, golden["gradients"][name][1].get<double>(), 1e-11 * norm) << name;
  }
}

// Documents of one sequence, each as a sequence of its own.
std::vector<MicroBatch> documents_of(const RandomBatch& batch, std::int64_t sequence) {
  std::vector<MicroBatch> documents;
  const MicroBatch whole = batch.part(sequence, 1);
  std::size_t end = 0;
  for (std::size_t begin = 0; begin < whole.ids.size(); begin = end) {
    for (end = begin + 1; end < whole.ids.size() && whole.position_ids[end] > 0;) ++end;
    documents.push_back({.ids = whole.ids.subspan(begin, end - begin),
                         .targets = whole.targets.subspan(begin, end - begin),
                         .weights = whole.weights.subspan(begin, end - begin),
                         .batch = 1,
                         .tokens = static_cast<std::int64_t>(end - begin)});
  }
  return documents;
}

// The loss and the gradients of samples with several documents are the sums of those that each document has alone.
void expect_sums_of_documents(const MakeBackend& make_backend, double tolerance) {
  for (std::uint32_t seed = 1; seed <= trials(20U); ++seed) {
    const auto backend = make_backend();
    ModelConfig config = small_config();
    config.max_position_embeddings = 33;
    config.hidden_dropout = config.attention_dropout = 0;
    RandomBatch batch(2, 33, config.vocab_size, seed);
    batch.add_documents(5, seed);
    Decoder model(config, {}), model_of_one(config, {});
    Executor packed(*backend, model, {.batch = 2, .tokens = 33, .first_keys = true, .position_ids = true});
    Executor alone(*backend, model_of_one, {.batch = 1, .tokens = 33});
    for (Executor* executor : {&packed, &alone}) {
      executor->allocate();
      executor->initialize(seed);
    }
    std::vector<double> sums;
    for (std::int64_t sequence = 0; sequence < 2; ++sequence) {
      for (const MicroBatch& document : documents_of(batch, sequence)) {
        const std::vector<double> values = losses_and_gradients(alone, document);
        sums.resize(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
      }
    }
    expect_near(losses_and_gradients(packed, batch.whole()), sums, tolerance, fmt::format("seed {}", seed));
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Documents, AreEachAsTheyAreAlone) {
  expect_sums_of_documents([] { return make_reference_backend(DType::kF64); }, 1e-12);
  // fp32: rounding of a few hundred sums.
  expect_sums_of_documents([] { return make_cpu_backend({.guard_memory = true}); }, 2e-5);
}

// In double the layouts may differ only by the order of sums: 1e-10 leaves four digits for three AdamW steps.
TEST(Documents, LearnTheSameInEveryLayout) {
  const MakeBackend reference = [] { return make_reference_backend(DType::kF64); };
  for (std::uint32_t seed = 1; seed <= trials(30U); ++seed) {
    RandomStudy random(seed);
    random.study.documents = true;
    const Layout layout = random.layout();
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, reference);
    expect_same(train(random.study, layout, reference), alone, 1e-10, random.study.text() + "; " + layout.text());
    if (HasFailure()) return;
  }
}

TEST(Documents, LearnTheSameInEverySlicingAndSchedule) {
  const MakeBackend reference = [] { return make_reference_backend(DType::kF64); };
  for (std::uint32_t seed = 1; seed <= trials(60U); ++seed) {
    RandomPipeline random(seed);
    random.study.documents = true;
    const Result alone = train(random.study, {.micro_batch = random.study.batch}, reference);
    expect_same(train(random.study, random.layout, reference), alone, 1e-10, random.text());
    if (HasFailure()) return;
  }
}

// The first keys live through a whole step: the plan is larger by four bytes for each token of a call, no more.
TEST(Documents, ArePlannedToTheByte) {
  const auto backend = make_reference_backend(DType::kF64);
  ModelConfig config = small_config();
  config.max_position_embeddings = 64;
  const auto planned = [&](bool first_keys) {
    Decoder model(config, {});
    return Executor(*backend, model, {.batch = 4, .tokens = 64, .first_keys = first_keys}).memory().lower_bound();
  };
  EXPECT_EQ(planned(true) - planned(false), 4 * 64 * 4);
}

}  // namespace
}  // namespace teratron::testing

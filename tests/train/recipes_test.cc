// The recipes in configs/: each is read as `teratron train --config` reads it, says what its paper says, and is planned
// on the paper's devices, without data, ranks or memory.
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <regex>
#include <set>

#include "console/readable.h"
#include "options/reading.h"
#include "train/config/start_reading.h"
#include "train/plans/memory_plan.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

// Where a recipe leaves it to the tokenizer.
constexpr std::int64_t kVocabulary = 50257;

// What a paper publishes of a run. `batch`: samples of an update.
struct Published {
  std::int64_t layers, hidden, heads, sequence, batch, tensor, pipeline, data;
  std::int64_t vocabulary = kVocabulary;
  std::int64_t device_gib = 32;  // of the paper's GPUs
  bool operator==(const Published&) const = default;
};

Published terapipe(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t batch, std::int64_t data,
                   std::int64_t pipeline, std::int64_t tensor) {
  return {layers, hidden, heads, 2048, batch, tensor, pipeline, data, kVocabulary, 16};
}

// Megatron-LM's Tables 1, 2 and 4, and TeraPipe's Table 1.
const std::map<std::string, Published>& published() {
  static const std::map<std::string, Published> kPublished = {
      {"gpt2-355m", {24, 1024, 16, 1024, 512, 1, 1, 64}},
      {"gpt2-2.5b", {54, 1920, 20, 1024, 512, 2, 1, 64}},
      {"gpt2-8.3b", {72, 3072, 24, 1024, 512, 8, 1, 64}},
      {"bert-336m", {24, 1024, 16, 512, 1024, 1, 1, 128, 30522}},
      {"bert-1.3b", {24, 2048, 32, 512, 1024, 2, 1, 128, 30522}},
      {"bert-3.9b", {48, 2560, 40, 512, 1024, 4, 1, 128, 30522}},
      {"scaling/gpt2-1.2b-tp1", {40, 1536, 16, 1024, 8, 1, 1, 1}},
      {"scaling/gpt2-2.5b-tp2", {54, 1920, 20, 1024, 8, 2, 1, 1}},
      {"scaling/gpt2-4.2b-tp4", {64, 2304, 24, 1024, 8, 4, 1, 1}},
      {"scaling/gpt2-8.3b-tp8", {72, 3072, 32, 1024, 8, 8, 1, 1}},
      {"terapipe/setting-01-1b", terapipe(24, 2048, 16, 128, 8, 24, 1)},
      {"terapipe/setting-02-1b", terapipe(24, 2048, 16, 72, 2, 12, 8)},
      {"terapipe/setting-03-1b", terapipe(24, 2048, 16, 72, 1, 24, 8)},
      {"terapipe/setting-04-13b", terapipe(40, 5120, 40, 32, 2, 20, 8)},
      {"terapipe/setting-05-13b", terapipe(40, 5120, 40, 32, 1, 40, 8)},
      {"terapipe/setting-06-44b", terapipe(96, 6144, 48, 8, 4, 96, 1)},
      {"terapipe/setting-07-44b", terapipe(96, 6144, 48, 8, 2, 24, 8)},
      {"terapipe/setting-08-44b", terapipe(96, 6144, 48, 8, 1, 48, 8)},
      {"terapipe/setting-09-175b", terapipe(96, 12288, 96, 2, 1, 96, 4)},
      {"terapipe/setting-10-175b", terapipe(96, 12288, 96, 2, 1, 48, 8)},
  };
  return kPublished;
}

const std::set<std::string>& recipes_of_ours() {
  static const std::set<std::string> kOurs = {"gpt2-tiny", "bert-tiny", "llama-tiny", "llama-15m"};
  return kOurs;
}

fs::path file_of(const std::string& recipe) {
  return fs::path(TERATRON_SOURCE_DIR) / "configs" / fs::path(recipe + ".toml");
}

// As `scaling/gpt2-1.2b-tp1`.
std::vector<std::string> recipes() {
  const fs::path folder = fs::path(TERATRON_SOURCE_DIR) / "configs";
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    names.push_back(fs::relative(entry.path(), folder).replace_extension().generic_string());
  }
  std::ranges::sort(names);
  return names;
}

// As the command reads it: UserError has all faults. The paths are what users give, and nothing is read of them.
TrainConfig read_recipe(const std::string& recipe, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words = {"--config", file_of(recipe).string(), "--data-path", "corpus", "--tokenizer",
                                    "tokenizer"};
  words.insert(words.end(), more.begin(), more.end());
  return read_train_start(words).config;
}

std::vector<std::int64_t> memory_of(const TrainConfig& config) {
  return planned_memory(config, {.vocab_size = kVocabulary, .compute_dtype = config.backend.compute_dtype()});
}

std::int64_t parameters_of(const TrainConfig& config) { return config.model.model_for(kVocabulary).parameters(); }

std::string readable(std::int64_t bytes) { return readable_bytes(static_cast<std::uint64_t>(bytes)); }

TEST(Recipes, AreReadAsTheCommandReadsThem) {
  for (const std::string& recipe : recipes()) EXPECT_NO_THROW(read_recipe(recipe)) << recipe;
}

TEST(Recipes, AreThoseOfThePapersAndOurs) {
  std::set<std::string> expected = recipes_of_ours();
  for (const auto& [recipe, _] : published()) expected.insert(recipe);
  EXPECT_THAT(recipes(), ::testing::UnorderedElementsAreArray(expected));
}

// They would name places of another machine.
TEST(Recipes, HaveNoPaths) {
  const std::set<std::string> of_users = {"data-path", "valid-data-path", "tokenizer"};
  for (const std::string& recipe : recipes()) {
    TrainConfig config;
    FieldList fields = fields_of(config);
    read_fields(fields, std::vector<std::string>{"--config", file_of(recipe).string()});
    for (const Field& field : fields) {
      const bool is_path = std::holds_alternative<fs::path*>(field.target) || of_users.contains(field.name);
      EXPECT_FALSE(is_path && !field.origin.empty()) << recipe << ": " << field.name;
    }
  }
}

TEST(Recipes, SayWhatThePapersSay) {
  for (const auto& [recipe, expected] : published()) {
    const TrainConfig config = read_recipe(recipe);
    const ModelConfig& model = config.model.config;
    const Published found = {.layers = model.num_layers,
                             .hidden = model.hidden_size,
                             .heads = model.num_attention_heads,
                             .sequence = config.model.seq_length,
                             .batch = config.largest_batch(),
                             .tensor = config.layout.tensor_parallel,
                             .pipeline = config.layout.pipeline_parallel,
                             .data = config.layout.data_parallel,
                             .vocabulary = model.vocab_size,
                             .device_gib = expected.device_gib};
    EXPECT_EQ(found, expected) << recipe << "\n" << to_toml(config);
    EXPECT_EQ(model.kind, recipe.starts_with("bert") ? ModelKind::kBert : ModelKind::kGpt2) << recipe;
    EXPECT_EQ(config.backend.compute_dtype(), DType::kF16) << recipe;
    EXPECT_EQ(config.optimizer.adamw.clip, 1.0) << recipe;
    const bool is_megatron = !recipe.starts_with("terapipe");
    EXPECT_EQ(model.hidden_dropout, is_megatron ? 0.1 : 0) << recipe;
    EXPECT_EQ(model.attention_dropout, model.hidden_dropout) << recipe;
    EXPECT_EQ(config.optimizer.adamw.weight_decay, is_megatron ? 0.01 : 0.1) << recipe;
    EXPECT_EQ(config.layout.recompute, is_megatron ? "full" : "none") << recipe;
  }
}

// Megatron-LM, section 4.2: 3000 updates of warm-up to 1.5e-4, then a cosine to 1e-5; of BERT 10 000 to 1e-4, then a
// line over 2 million.
TEST(Recipes, FollowTheLearningRatesOfMegatron) {
  for (const std::string recipe : {"gpt2-355m", "gpt2-2.5b", "gpt2-8.3b"}) {
    const LearningRateSchedule schedule = read_recipe(recipe).schedule();
    EXPECT_DOUBLE_EQ(schedule.at(3000), 1.5e-4) << recipe;
    EXPECT_LT(schedule.at(2999), 1.5e-4) << recipe;
    EXPECT_NEAR(schedule.at(151'500), (1.5e-4 + 1e-5) / 2, 1e-9) << recipe << ": half of a cosine";
    EXPECT_GT(schedule.at(299'000), 1e-5) << recipe;
    EXPECT_NEAR(schedule.at(300'000), 1e-5, 1e-12) << recipe;
    EXPECT_EQ(read_recipe(recipe).train_iters, 300'000) << recipe;
  }
  for (const std::string recipe : {"bert-336m", "bert-1.3b", "bert-3.9b"}) {
    const LearningRateSchedule schedule = read_recipe(recipe).schedule();
    EXPECT_DOUBLE_EQ(schedule.at(10'000), 1e-4) << recipe;
    EXPECT_LT(schedule.at(9'999), 1e-4) << recipe;
    EXPECT_NEAR(schedule.at(507'500), 0.75e-4, 1e-9) << recipe << ": a quarter of a line";
    EXPECT_NEAR(schedule.at(2'000'000), 0, 1e-12) << recipe;
    EXPECT_EQ(read_recipe(recipe).train_iters, 2'000'000) << recipe;
  }
}

// To the digits that the name has: 8.3B is from 8.25 to 8.35. GPT-3's 1.3B is TeraPipe's 1B.
TEST(Recipes, HaveAsManyParametersAsTheirNamesSay) {
  const std::regex size("([0-9]+)(\\.[0-9])?([mb])(-tp[0-9]+)?$");
  for (const auto& [recipe, _] : published()) {
    std::smatch match;
    ASSERT_TRUE(std::regex_search(recipe, match, size)) << recipe;
    const double unit = (match[3] == "b" ? 1e9 : 1e6) * (match[2].length() > 0 ? 0.1 : 1);
    const double named = std::stod(match[1].str() + match[2].str()) * (match[3] == "b" ? 1e9 : 1e6);
    EXPECT_NEAR(static_cast<double>(parameters_of(read_recipe(recipe))), named, unit / 2) << recipe;
  }
}

// The scaling study pads every row's vocabulary as the widest one needs (section 5.1), and its rows of 64 times the
// GPUs are the same files with more copies.
TEST(Recipes, ScalingStudyHasOneVocabularyAndRowsOfManyCopies) {
  for (const auto& [recipe, expected] : published()) {
    if (!recipe.starts_with("scaling/")) continue;
    const TrainConfig config = read_recipe(recipe, {"--dp", "64", "--global-batch-size", "512"});
    EXPECT_EQ(config.layout.mesh().ranks(), 64 * expected.tensor) << recipe;
    EXPECT_EQ(config.model.config.padded_vocab_size(config.layout.tensor_parallel), 51200) << recipe;
    EXPECT_EQ(memory_of(config), memory_of(read_recipe(recipe))) << recipe << ": copies cost a rank nothing";
  }
}

// Those of which the paper says that slices help are cut, and all have its schedule.
TEST(Recipes, TerapipeRunsItsScheduleOverWholeSequences) {
  for (const auto& [recipe, _] : published()) {
    if (!recipe.starts_with("terapipe/")) continue;
    const PipelinePlan plan = plan_pipeline(read_recipe(recipe));
    EXPECT_EQ(plan.kind, pipeline::ScheduleKind::kTeraPipe) << recipe;
    const bool is_whole = recipe.ends_with("02-1b") || recipe.ends_with("03-1b");
    EXPECT_EQ(plan.slices_of(0).empty(), is_whole) << recipe;
    EXPECT_EQ(std::reduce(plan.slices_of(0).begin(), plan.slices_of(0).end()), is_whole ? 0 : 2048) << recipe;
    const PipelinePlan whole = plan_pipeline(read_recipe(recipe, {"--token-slices", "uniform:1"}));
    EXPECT_TRUE(whole.slices_of(0).empty()) << recipe << ", as its comment has it for GPipe";
  }
  EXPECT_EQ(plan_pipeline(read_recipe("terapipe/setting-05-13b")).slices_of(0),
            (std::vector<std::int64_t>{704, 688, 656}));
  EXPECT_EQ(plan_pipeline(read_recipe("terapipe/setting-06-44b")).slices_of(0).size(), 33U);
  EXPECT_EQ(plan_pipeline(read_recipe("terapipe/setting-09-175b")).slices_of(0).size(), 19U);
}

// On the GPUs of the papers. Beside the plan, a GiB is left to the driver and to libraries.
TEST(Recipes, FitThePapersDevices) {
  for (const auto& [recipe, expected] : published()) {
    const std::vector<std::int64_t> stages = memory_of(read_recipe(recipe));
    ASSERT_EQ(static_cast<std::int64_t>(stages.size()), expected.pipeline) << recipe;
    std::vector<std::string> texts;
    for (const std::int64_t bytes : stages) texts.push_back(readable(bytes));
    const auto alike = std::ranges::unique(texts);
    texts.erase(alike.begin(), alike.end());
    fmt::print("{}: {} of {} GiB\n", recipe, fmt::join(texts, ", "), expected.device_gib);
    EXPECT_LE(std::ranges::max(stages), (expected.device_gib - 1) << 30) << recipe;
  }
}

// Section 5.1: the smallest model of the study fits on one GPU, and the others need the GPUs that they have.
TEST(Recipes, ScalingStudyDoesNotFitHalfTheGpus) {
  for (const auto& [recipe, expected] : published()) {
    if (!recipe.starts_with("scaling/") || expected.tensor == 1) continue;
    const TrainConfig half = read_recipe(recipe, {"--tp", fmt::format("{}", expected.tensor / 2)});
    EXPECT_GT(memory_of(half).front(), expected.device_gib << 30) << recipe;
  }
}

// They run on a laptop beside other programs.
TEST(Recipes, OwnRecipesAreSmall) {
  for (const std::string& recipe : recipes_of_ours()) {
    const TrainConfig config = read_recipe(recipe);
    EXPECT_EQ(config.layout.mesh().ranks(), 1) << recipe;
    EXPECT_EQ(config.backend.kind, BackendKind::kCpu) << recipe;
    EXPECT_LT(parameters_of(config), 25'000'000) << recipe;
    EXPECT_LT(memory_of(config).front(), 1 << 30) << recipe;
  }
}

}  // namespace
}  // namespace teratron::testing

// Random models with LoRA and rsLoRA adapters, beside PEFT (tests/oracle/adapters_as_peft.py): its files become ours
// and ours become its, and ten updates in fp32 end where its end, on one rank and on several. Where frozen weights lie
// in 8 bits, PEFT's were rounded so before. Needs PEFT in the environment of scripts/oracle-env.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/adapter_files.h"
#include "checkpoint/initial_weights.h"
#include "model/adapters.h"
#include "model/random_layouts.h"
#include "oracle/python.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kAdaptedUpdates = 10;

struct AdaptedCase {
  Study study;
  Json request;
};

AdaptedCase make_adapted_case(std::uint32_t seed, bool eight_bits) {
  constexpr const char* kNames[] = {"llama", "gpt2", "qwen2", "gpt_neox"};
  std::mt19937 random(seed);
  AdaptedCase one;
  Study& study = one.study;
  study = {
      .batch = 2, .tokens = 6, .logits_chunk = 100, .steps = kAdaptedUpdates, .learning_rate = 1e-3, .epsilon = 1e-4};
  study.seed = seed;
  const std::string family = kNames[seed % 4];
  study.config = small_config();
  study.config.set_kind(find_family(family)->kind);
  study.config.vocab_size = 23;
  std::vector<std::string> targets;
  for (const AdapterTarget& target : study.config.family().adapter_targets) {
    if (random() % 2 == 0 || seed % 5 == 0) targets.emplace_back(target.name);
  }
  if (targets.empty()) targets.emplace_back(study.config.family().adapter_targets.front().name);
  if (eight_bits) study.weight_tiles = DType::kQ8Tile;
  one.request = {{"name", fmt::format("{}-{}{}", family, seed, eight_bits ? "-8-bits" : "")},
                 {"family", family},
                 {"seed", seed},
                 {"vocabulary", study.config.vocab_size},
                 {"layers", 1 + seed % 2},
                 {"hidden", eight_bits ? 64 : 16},
                 {"heads", 4},
                 {"eight_bits", eight_bits},
                 {"key_heads", random() % 2 == 0 ? 2 : 4},
                 {"rank", 1 + random() % 5},
                 {"alpha", 6},
                 {"rslora", random() % 2 == 0},
                 {"targets", targets},
                 {"learning_rate", study.learning_rate},
                 {"epsilon", study.epsilon}};
  for (int step = 0; step < kAdaptedUpdates; ++step) {
    const RandomBatch batch = study.batch_of(step);
    const auto rows = [&](const std::vector<std::int32_t>& values) {
      Json all = Json::array();
      for (auto row = values.begin(); row != values.end(); row += batch.tokens) {
        all.push_back(std::vector<std::int32_t>(row, row + batch.tokens));
      }
      return all;
    };
    one.request["batches"].push_back(
        {{"inputs", rows(batch.ids)}, {"targets", rows(batch.targets)}, {"weight", double{batch.weights[0]}}});
  }
  return one;
}

double norm_between(const std::vector<double>& one, const std::vector<double>& other) {
  double sum = 0;
  for (std::size_t i = 0; i < one.size(); ++i) sum += (one[i] - other[i]) * (one[i] - other[i]);
  return std::sqrt(sum);
}

// All weights of a checkpoint of adapters and of the model that they are beside; where that is in tiles, the adapters'.
std::vector<double> weights_in(const fs::path& path, std::optional<DType> tiles) {
  const ModelConfig config = find_weights(path).model;
  const auto backend = make_cpu_backend();
  const auto model = make_model(config);
  Executor executor(*backend, *model, {.batch = 1, .tokens = 2, .weight_tiles = tiles});
  executor.allocate();
  EXPECT_TRUE(load_weights(path, config, executor.all_parameters(), *backend).empty());
  WholeWeights weights;
  weights.add(executor);
  return weights.values();
}

TEST(AdaptersOracle, TenUpdatesAreThoseOfPeftAndFilesGoThereAndBack) {
  if (const std::string reason = why_no_oracle(); !reason.empty()) GTEST_SKIP() << reason;
  const TemporaryFolder folder;
  if (!oracle_has("peft")) {
    GTEST_SKIP() << "no PEFT in the Python environment; scripts/oracle-env adds it";
  }
  std::vector<AdaptedCase> cases;
  Json requests = Json::array();
  for (std::uint32_t seed = 1; seed <= (std::getenv("TERATRON_WHOLE_DATA") != nullptr ? 40U : 4U); ++seed) {
    for (const bool eight_bits : {false, true}) {
      cases.push_back(make_adapted_case(seed, eight_bits));
      requests.push_back(cases.back().request);
    }
  }
  const auto ask = [&](const char* what) {
    write_file_atomically(folder / "cases.json", requests.dump());
    ASSERT_EQ(run_oracle("adapters_as_peft.py", {what, folder.path().string()}, folder / "log"), 0)
        << read_file(folder / "log");
  };
  ASSERT_NO_FATAL_FAILURE(ask("make"));
  double worst = 0;
  for (AdaptedCase& one : cases) {
    const std::string name = one.request["name"];
    const fs::path here = folder / name, base = here / "model";
    import_from_peft(here / "adapters", base, here / "ours");
    import_from_peft(here / "trained", base, here / "ours-trained");
    export_to_peft(here / "ours", here / "back");
    const std::optional<DType> tiles = one.study.weight_tiles;
    const std::vector<double> start = weights_in(here / "ours", tiles), end = weights_in(here / "ours-trained", tiles);
    const double movement = norm_between(start, end);
    EXPECT_GT(movement, 0) << name;
    one.study.config = find_weights(here / "ours").model;
    one.study.take_weights = [&](Executor& runner) {
      load_weights(here / "ours", one.study.config, runner.all_parameters(), runner.backend());
    };
    const Json expected = Json::parse(read_file(here / "make.json"));
    for (const Layout& layout :
         {Layout{.micro_batch = 2}, Layout{{.tensor = 4}, 2}, Layout{{.tensor = 2, .data = 2}, 1},
          Layout{{.tensor = 2}, 1, /*sequence_parallel=*/true}}) {
      if (tiles && layout.mesh.tensor == 4) continue;  // whose parts are half a block
      const Result result = train(one.study, layout, [] { return make_cpu_backend(); });
      expect_near(result.losses, expected["losses"], 1e-5, name + " " + layout.text());
      EXPECT_LE(norm_between(result.weights, end), 1e-4 * movement) << name << " " << layout.text();
      worst = std::max(worst, norm_between(result.weights, end) / movement);
    }
  }
  fmt::print("of the movement: {:.1e}\n", worst);
  ASSERT_NO_FATAL_FAILURE(ask("read"));
  for (const AdaptedCase& one : cases) {
    const fs::path here = folder / one.request["name"].get<std::string>();
    const double theirs = Json::parse(read_file(here / "make.json"))["losses"][0];
    EXPECT_NEAR(Json::parse(read_file(here / "read.json"))["loss"].get<double>(), theirs, 1e-5 * theirs);
  }
}

}  // namespace
}  // namespace teratron::testing

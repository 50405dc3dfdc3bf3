// Weights for a task from a model that ends otherwise: what both have is taken bit by bit, the rest is drawn by the
// seed, alike under any layout.
#include <gmock/gmock.h>

#include <algorithm>

#include "base/message_of.h"
#include "base/temporary_folder.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face_files.h"
#include "checkpoint/initial_weights.h"
#include "comm/launch.h"
#include "executor/executor.h"
#include "model/make_model.h"
#include "model/random_batch.h"
#include "model/whole_weights.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class FineTuningWeights : public ::testing::Test {
 protected:
  static ModelConfig config_with(ModelHead head, std::int64_t labels = 3) {
    ModelConfig config = small_bert_config(NormPlacement::kPost);
    config.head = head;
    if (tells_labels(head)) config.num_labels = labels;
    return config;
  }
  // A checkpoint of random weights.
  fs::path save(const ModelConfig& config, const std::string& name) const {
    const auto backend = make_cpu_backend();
    const auto model = make_model(config);
    Executor executor(*backend, *model, {.batch = 4, .tokens = 5});
    executor.allocate();
    executor.initialize(77);
    save_checkpoint(folder_ / name, config, executor.parameters(), *backend, {.iteration = 3});
    return folder_ / name;
  }
  using Weights = std::map<std::string, std::vector<double>>;
  // All weights of a new model, by name.
  static Weights draw(const ModelConfig& config, std::uint64_t seed) {
    const auto backend = make_cpu_backend();
    const auto model = make_model(config);
    Executor executor(*backend, *model, {.batch = 4, .tokens = 5});
    executor.allocate();
    executor.initialize(seed);
    WholeWeights weights;
    weights.add(executor);
    return weights.by_name();
  }
  // And of a run that starts from `path`.
  static Weights start(const fs::path& path, const ModelConfig& config, std::uint64_t seed,
                       const MeshShape& shape = {}) {
    WholeWeights weights;
    run_ranks({}, shape.ranks(), [&](Communicator& world) {
      const auto backend = make_cpu_backend();
      const auto mesh = std::make_shared<Mesh>(make_mesh(world, shape));
      const auto model = make_model(config, mesh->coordinates().tensor);
      Executor executor(
          *backend, *model,
          {.batch = 4,
           .tokens = 6,
           .schedule = pipeline::make_schedule(pipeline::ScheduleKind::k1F1B, {.stages = shape.pipeline})},
          mesh);
      executor.allocate();
      executor.initialize(seed, load_weights(path, config, executor.all_parameters(), *backend));
      weights.add(executor);
    });
    return weights.by_name();
  }

  const TemporaryFolder folder_;
};

constexpr ModelHead kAllHeads[] = {ModelHead::kPretraining, ModelHead::kNone,  ModelHead::kClassification,
                                   ModelHead::kChoice,      ModelHead::kSpans, ModelHead::kTokens};

TEST_F(FineTuningWeights, TakeWhatBothModelsHaveAndDrawTheRest) {
  for (const ModelHead from : kAllHeads) {
    const ModelConfig stored = config_with(from, 4);
    const fs::path path = save(stored, fmt::format("from-{}", static_cast<int>(from)));
    const auto there = start(path, stored, 1);
    for (const ModelHead to : kAllHeads) {
      if (to == ModelHead::kNone) continue;
      const ModelConfig config = config_with(to);
      const Weights here = start(path, config, 1), other_seed = start(path, config, 2), fresh = draw(config, 1);
      std::vector<std::string> drawn;
      if (config.has_pooler() && !stored.has_pooler()) drawn = {"pooler.weight", "pooler.bias"};
      const std::string layer = to == ModelHead::kSpans ? "spans" : "classifier";
      if (to == ModelHead::kPretraining) {
        for (const char* name : {"head.transform.weight", "head.transform.bias", "head.norm.weight", "head.norm.bias",
                                 "head.bias", "order.weight", "order.bias"}) {
          if (from != to) drawn.emplace_back(name);
        }
      } else if (to != from || tells_labels(to)) {
        drawn.push_back(layer + ".weight");
        drawn.push_back(layer + ".bias");
      }
      EXPECT_EQ(drawn_weights(path, config), drawn);
      for (const auto& [name, values] : here) {
        const bool is_drawn = std::ranges::count(drawn, name) > 0;
        EXPECT_EQ(values, is_drawn ? fresh.at(name) : there.at(name)) << name;
        if (!is_drawn) {
          EXPECT_EQ(values, other_seed.at(name)) << name;
        } else if (!name.ends_with("bias") && !name.starts_with("head.norm")) {
          EXPECT_NE(values, other_seed.at(name)) << name;
        }
      }
    }
  }
}

// The labels' rows are found by name, in a checkpoint and in a folder of Hugging Face's, in any layout.
TEST_F(FineTuningWeights, PutLabelsInTheOrderThatIsAskedFor) {
  for (const auto& [head, is_ours] : {std::pair{ModelHead::kClassification, true},
                                      {ModelHead::kClassification, false},
                                      {ModelHead::kTokens, true},
                                      {ModelHead::kTokens, false}}) {
    ModelConfig stored = config_with(head);
    stored.label_names = {"no", "yes", "maybe"};
    const fs::path saved = save(stored, fmt::format("ours-{}-{}", static_cast<int>(head), is_ours));
    const fs::path path = is_ours ? saved : folder_ / fmt::format("theirs-{}", static_cast<int>(head));
    if (!is_ours) export_to_hugging_face(saved, path);
    const Weights plain = start(path, stored, 1);
    ModelConfig asked = stored;
    std::ranges::sort(asked.label_names);
    do {
      const Weights here = start(path, asked, 1);
      EXPECT_EQ(start(path, asked, 1, {.tensor = 3, .pipeline = 2}), here);
      EXPECT_THAT(drawn_weights(path, asked), ::testing::IsEmpty());
      for (const auto& [tensor, values] : here) {
        if (!tensor.starts_with("classifier.")) {
          EXPECT_EQ(values, plain.at(tensor)) << tensor;
          continue;
        }
        const auto rows = static_cast<std::ptrdiff_t>(asked.label_names.size()), width = std::ssize(values) / rows;
        for (std::ptrdiff_t row = 0; row < rows; ++row) {
          const auto there = std::ranges::find(stored.label_names, asked.label_names[static_cast<std::size_t>(row)]);
          const auto from = plain.at(tensor).begin() + (there - stored.label_names.begin()) * width;
          EXPECT_TRUE(std::equal(from, from + width, values.begin() + row * width)) << tensor << row;
        }
      }
    } while (std::ranges::next_permutation(asked.label_names).found);
    asked.label_names = {"no", "yes", "never"};
    EXPECT_THAT(drawn_weights(path, asked), ::testing::ElementsAre("classifier.weight", "classifier.bias"));
    EXPECT_THAT(warning_of_drawn(path, asked), HasSubstr("has 3 labels (no, yes, maybe)"));
  }
}

TEST_F(FineTuningWeights, AreTheSameUnderAnyLayout) {
  for (const ModelHead to : kAllHeads) {
    if (to == ModelHead::kNone) continue;
    const ModelConfig config = config_with(to);
    const ModelHead from = to == ModelHead::kPretraining ? ModelHead::kSpans : ModelHead::kPretraining;
    const fs::path path = save(config_with(from), fmt::format("to-{}", static_cast<int>(to)));
    const auto alone = start(path, config, 5);
    for (const MeshShape shape : {MeshShape{.tensor = 3}, MeshShape{.pipeline = 2}, MeshShape{.data = 2},
                                  MeshShape{.tensor = 3, .pipeline = 2}}) {
      EXPECT_EQ(start(path, config, 5, shape), alone) << shape.tensor << shape.pipeline << shape.data;
    }
  }
}

TEST_F(FineTuningWeights, AreAlikeFromAHuggingFaceFolderAndItsConversion) {
  for (const char* name : {"bert_tiny", "bert_classification", "bert_spans"}) {
    const fs::path golden = fs::path(TERATRON_SOURCE_DIR) / "tests/golden" / name;
    import_from_hugging_face(golden, folder_ / name);
    ModelConfig config = find_weights(golden).model;
    config.head = ModelHead::kChoice;
    EXPECT_EQ(start(golden, config, 5), start(folder_ / name, config, 5)) << name;
    EXPECT_EQ(drawn_weights(golden, config), drawn_weights(folder_ / name, config));
  }
}

// A folder that BertForMaskedLM saves. The pooler of its conversion would be that of --seed 0.
TEST_F(FineTuningWeights, DrawAPoolerThatAHuggingFaceFolderLacks) {
  make_variant(
      fs::path(TERATRON_SOURCE_DIR) / "tests/golden/bert_tiny", folder_ / "hf", [](auto&) {},
      [](FileTensors& tensors) {
        std::erase_if(tensors, [](const auto& tensor) { return tensor.first.starts_with("bert.pooler."); });
      });
  ModelConfig config = find_weights(folder_ / "hf").model;
  config.head = ModelHead::kChoice;
  EXPECT_THAT(drawn_weights(folder_ / "hf", config),
              ::testing::ElementsAre("pooler.weight", "pooler.bias", "classifier.weight", "classifier.bias"));
  const Weights here = start(folder_ / "hf", config, 5), fresh = draw(config, 5);
  EXPECT_EQ(here.at("pooler.weight"), fresh.at("pooler.weight"));
  EXPECT_NE(here.at("layers.0.mlp.up.weight"), fresh.at("layers.0.mlp.up.weight"));
}

TEST_F(FineTuningWeights, AreRefusedForAnotherShapeOrHead) {
  const fs::path path = save(config_with(ModelHead::kPretraining), "source");
  const auto refusal = [&](const ModelConfig& config) {
    return message_of<UserError>([&] { start(path, config, 1); });
  };
  ModelConfig wider = config_with(ModelHead::kSpans);
  wider.hidden_size = 24;
  EXPECT_THAT(refusal(wider), HasSubstr("hidden_size is 12 there, 24 was asked for"));
  EXPECT_THAT(refusal(config_with(ModelHead::kNone)),
              HasSubstr("head is \"pretraining\" there, \"none\" was asked for"));
}

}  // namespace
}  // namespace teratron::testing

// Names of labels in Hugging Face's config.json.
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

// Comparing each name with all before it takes minutes.
TEST(LabelConfig, HundredsOfThousandsOfLabelsAreWrittenAndReadAtOnce) {
  ModelConfig config = small_config();
  config.set_kind(ModelKind::kBert);
  config.norm_placement = NormPlacement::kPost;
  config.head = ModelHead::kClassification;
  config.num_labels = 200'000;
  for (std::int64_t row = 0; row < config.num_labels; ++row)
    config.label_names.push_back(fmt::format("label {}", -row));
  const TemporaryFolder folder;
  put_file(folder / "config.json", hugging_face_config(config, DType::kF32, {}));
  EXPECT_EQ(read_hugging_face_config(folder / "config.json").model.label_names, config.label_names);
}

}  // namespace
}  // namespace teratron::testing

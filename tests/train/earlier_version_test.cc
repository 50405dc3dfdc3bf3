// A run that an earlier version began (tests/golden/make_checkpoint_golden.py) goes on as that version would have gone
// on, with the same command line.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/safetensors/safetensors.h"
#include "options/reading.h"
#include "runtime/recorded_data.h"
#include "train/training_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(TERATRON_SOURCE_DIR) / "tests/golden/checkpoint_0_1";

class EarlierVersion : public TrainingFixture {
 protected:
  void SetUp() override {
    TrainingFixture::SetUp();
    fs::copy(kGolden / "run", folder_ / "run", fs::copy_options::recursive);
    for (const char* suffix : {".bin", ".idx"}) {
      fs::copy(kGolden / (std::string("corpus") + suffix), folder_ / (std::string("corpus") + suffix),
               fs::copy_options::overwrite_existing);
    }
    config_ = read_options<TrainConfig>(arguments());
  }
  // Those of make_checkpoint_golden.py.
  std::vector<std::string> arguments() const {
    std::vector<std::string> words;
    const std::string data = (folder_ / "corpus").string(), run = (folder_ / "run").string();
    for (const auto& [name, value] :
         std::vector<std::pair<std::string, std::string>>{{"num-layers", "2"},
                                                          {"hidden-size", "8"},
                                                          {"num-attention-heads", "2"},
                                                          {"vocab-size", "40"},
                                                          {"make-vocab-size-divisible-by", "8"},
                                                          {"seq-length", "8"},
                                                          {"micro-batch-size", "2"},
                                                          {"global-batch-size", "4"},
                                                          {"train-iters", "6"},
                                                          {"lr-decay-iters", "6"},
                                                          {"lr", "1e-2"},
                                                          {"seed", "7"},
                                                          {"split", "5,1"},
                                                          {"eval-iters", "2"},
                                                          {"threads", "1"},
                                                          {"data-path", data},
                                                          {"load", run},
                                                          {"save", run}}) {
      words.push_back("--" + name);
      words.push_back(value);
    }
    return words;
  }
};

TEST_F(EarlierVersion, ARunOfItGoesOnAsItWouldHave) {
  const TrainingRun run = train(config_);
  const auto expected = nlohmann::json::parse(read_file(kGolden / "expected.json"));
  ASSERT_EQ(run.losses.size(), 3U);
  // The same bits on the same processor; others may add in another order.
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(run.losses[i], expected["losses"][i].get<double>(), 1e-6);
  ASSERT_TRUE(run.result.validation_loss.has_value());
  EXPECT_NEAR(*run.result.validation_loss, expected["validation_loss"].get<double>(), 1e-6);

  const SafetensorsFile theirs(kGolden / "expected.safetensors"),
      ours(read_checkpoint_info(folder_ / "run").folder / "model.safetensors");
  ASSERT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const SafetensorsEntry& entry : theirs.tensors()) {
    const SafetensorsEntry* own = ours.find(entry.name);
    ASSERT_NE(own, nullptr) << entry.name;
    ASSERT_EQ(own->shape, entry.shape) << entry.name;
    const auto a = ours.bytes(*own), b = theirs.bytes(entry);
    for (std::size_t at = 0; at < b.size(); at += sizeof(float)) {
      float mine = 0, other = 0;
      std::memcpy(&mine, a.data() + at, sizeof(float));
      std::memcpy(&other, b.data() + at, sizeof(float));
      ASSERT_NEAR(mine, other, 1e-6) << entry.name;  // three updates move weights by 1e-2
    }
  }
}

TEST_F(EarlierVersion, ItsCheckpointIsThatOfAGpt2TrainedInFileOrder) {
  const CheckpointInfo info = read_checkpoint_info(folder_ / "run");
  EXPECT_EQ(info.model.kind, ModelKind::kGpt2);
  EXPECT_EQ(recorded_split(info.state), kFileOrder);
}

}  // namespace
}  // namespace teratron::testing

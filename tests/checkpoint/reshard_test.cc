// A checkpoint in other files is the same checkpoint: to loading, verifying, exporting and resharding again.
#include "checkpoint/native/reshard.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Reshard : public ::testing::Test {
 protected:
  Reshard() : model_(small_config()) {
    model_.fill(1);
    put_file(folder_ / "vocab.json", "{\"a\": 0}");
    save("run", {.tokenizer = folder_ / "vocab.json"});
  }
  fs::path save(const std::string& name, const SaveOptions& options) {
    return save_checkpoint(folder_ / name, small_config(), model_.parameters, *model_.backend, some_state(3), options);
  }
  void expect_same_checkpoint(const fs::path& path) {
    RandomModel loaded(small_config());
    EXPECT_EQ(load_checkpoint(path, small_config(), loaded.parameters, *loaded.backend), some_state(3));
    EXPECT_EQ(loaded.bytes(), model_.bytes());
    const CheckpointVerification found = verify_checkpoint(path);
    EXPECT_TRUE(found.intact());
    EXPECT_EQ(found.tensors, 3 * static_cast<std::int64_t>(model_.parameters.size()));
    EXPECT_TRUE(read_checkpoint_info(path).has_optimizer);
    EXPECT_EQ(bytes_of_file(read_checkpoint_info(path).folder / "vocab.json"), "{\"a\": 0}");
  }

  TemporaryFolder folder_;
  RandomModel model_;
};

TEST_F(Reshard, FilesOfAnySizeHoldTheSameCheckpointAndLeadBackToTheSameFiles) {
  std::int64_t fewest = 1000, most = 0;
  for (const std::uint64_t size : {1, 500, 2400, 5000, 1 << 20}) {
    const fs::path to = folder_ / fmt::format("in-{}", size);
    const ReshardReport report = reshard_checkpoint(folder_ / "run", to, size);
    expect_same_checkpoint(to);
    for (const CheckpointFileInfo& file : read_checkpoint_info(to).files) {
      const std::uint64_t values = static_cast<std::uint64_t>(file.values) * 4;
      EXPECT_TRUE(values <= size || file.tensors == 1) << file.name << ": " << values;
    }
    fewest = std::min(fewest, report.files);
    most = std::max(most, report.files);

    const fs::path back = folder_ / fmt::format("back-{}", size);
    reshard_checkpoint(to, back, 0);
    const auto original = all_files(folder_ / "run"), again = all_files(back);
    EXPECT_TRUE(again == original) << "tensors in the same order, the same checksums, the same names";
  }
  EXPECT_EQ(fewest, 3);
  EXPECT_EQ(most, 3 * static_cast<std::int64_t>(model_.parameters.size()) + 1) << "a file for each tensor";
}

TEST_F(Reshard, ACheckpointInManyFilesIsExportedAsTheOneFileIs) {
  save("run", {});  // the tokenizer of the other tests has no end of text
  reshard_checkpoint(folder_ / "run", folder_ / "many", 500);
  export_to_hugging_face(folder_ / "run", folder_ / "hf-one");
  export_to_hugging_face(folder_ / "many", folder_ / "hf-many");
  EXPECT_TRUE(all_files(folder_ / "hf-one") == all_files(folder_ / "hf-many"));
}

TEST_F(Reshard, WeightsWithoutTheOptimizerStayWithout) {
  save("weights", {.optimizer = false});
  reshard_checkpoint(folder_ / "weights", folder_ / "many", 500);
  EXPECT_FALSE(read_checkpoint_info(folder_ / "many").has_optimizer);
}

TEST_F(Reshard, DamageDoesNotTravelOn) {
  for (const auto& [name, content] : all_files(folder_ / "run")) {
    if (content.empty()) continue;
    flip_bit(folder_ / "run" / name, content.size() / 2, 1);
    EXPECT_THAT(message_of<UserError>([&] { reshard_checkpoint(folder_ / "run", folder_ / "to", 500); }),
                HasSubstr("damaged"))
        << name;
    EXPECT_FALSE(fs::exists(folder_ / "to" / "latest_checkpointed_iteration.txt")) << name;
    EXPECT_FALSE(fs::exists(folder_ / "to" / "iter_0000003")) << name;
    put_file(folder_ / "run" / name, content);
  }
}

TEST_F(Reshard, AFileOfManyThatIsGoneIsNamed) {
  reshard_checkpoint(folder_ / "run", folder_ / "many", 2400);
  const fs::path checkpoint = read_checkpoint_info(folder_ / "many").folder;
  for (const CheckpointFileInfo& file : read_checkpoint_info(folder_ / "many").files) {
    fs::rename(checkpoint / file.name, folder_ / "aside");
    RandomModel loaded(small_config());
    EXPECT_THAT(message_of<UserError>(
                    [&] { load_checkpoint(folder_ / "many", small_config(), loaded.parameters, *loaded.backend); }),
                AllOf(HasSubstr(file.name), HasSubstr("is missing")));
    fs::rename(folder_ / "aside", checkpoint / file.name);
  }
}

// Its files tell that it was one.
TEST_F(Reshard, ACheckpointThatLostItsListIsCalledDamagedHoweverItsFilesAreCut) {
  save("weights", {.optimizer = false});
  for (const char* name : {"run", "weights"}) {
    for (const std::uint64_t size : {0, 500}) {
      const fs::path to = folder_ / fmt::format("{}-{}", name, size);
      reshard_checkpoint(folder_ / name, to, size);
      const fs::path checkpoint = to / "iter_0000003";
      fs::remove(checkpoint / "checkpoint.json");
      EXPECT_THAT(message_of<UserError>([&] { read_checkpoint_info(checkpoint); }),
                  HasSubstr((checkpoint / "checkpoint.json").string() + "' is missing"));
      if (name == std::string_view("run")) continue;
      put_file(checkpoint / "config.json", "{}");
      EXPECT_THAT(message_of<UserError>([&] { read_checkpoint_info(checkpoint); }), HasSubstr("a Hugging Face model"));
    }
  }
}

TEST_F(Reshard, ThatWasKilledBeforeItsLastStepIsFinishedByTheSameOneAlone) {
  reshard_checkpoint(folder_ / "run", folder_ / "to", 2400);
  const auto whole = all_files(folder_ / "to");
  fs::remove(folder_ / "to" / kTrackerFile);
  const auto unfinished = all_files(folder_ / "to");
  EXPECT_THAT(message_of<UserError>([&] { reshard_checkpoint(folder_ / "run", folder_ / "to", 500); }),
              HasSubstr("holds a checkpoint already"));
  EXPECT_TRUE(all_files(folder_ / "to") == unfinished);
  reshard_checkpoint(folder_ / "run", folder_ / "to", 2400);
  EXPECT_TRUE(all_files(folder_ / "to") == whole);
}

TEST_F(Reshard, AFolderThatHoldsACheckpointIsLeftAlone) {
  const auto before = all_files(folder_ / "run");
  for (const fs::path& to : {folder_ / "run", folder_ / "run" / "iter_0000003"}) {
    EXPECT_THAT(message_of<UserError>([&] { reshard_checkpoint(folder_ / "run", to, 500); }),
                HasSubstr("holds a checkpoint already"));
  }
  EXPECT_TRUE(all_files(folder_ / "run") == before);
}

}  // namespace
}  // namespace teratron::testing

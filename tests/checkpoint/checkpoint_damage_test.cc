// Damage: any bit of any file, any length. Loading and verifying name the file, and the checkpoint to go back to.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/philox.h"
#include "base/trials.h"
#include "checkpoint/damage.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DamagedCheckpointTest : public ::testing::Test {
 protected:
  DamagedCheckpointTest() : model_(small_config()) {
    model_.fill(1);
    put_file(tokenizer_ / "vocab.json", "{\"a\": 0}");
    save(1);
    folder_ = save(2);
  }
  fs::path save(std::int64_t iteration) {
    return save_checkpoint(root_.path(), small_config(), model_.parameters, *model_.backend, some_state(iteration),
                           {.tokenizer = tokenizer_.path()});
  }
  std::string load_message() {
    return message_of<UserError>(
        [&] { load_checkpoint(root_.path(), small_config(), model_.parameters, *model_.backend); });
  }

  TemporaryFolder root_, tokenizer_;
  RandomModel model_;
  fs::path folder_;  // of the later checkpoint
};

// About 60 bytes of each file (ten with sanitizers), spread over its length, each with one random bit flipped.
TEST_F(DamagedCheckpointTest, AnyBitOfAnyFileIsFoundAndTheFileNamed) {
  RandomSequence random({.seed = 9});
  for (const auto& [name, content] : all_files(folder_)) {
    const std::size_t step = std::max<std::size_t>(1, content.size() / trials(std::size_t{60}));
    for (std::size_t byte = random.below(step); byte < content.size(); byte += 1 + random.below(2 * step)) {
      flip_bit(folder_ / name, byte, static_cast<int>(random.below(8)));
      EXPECT_THAT(load_message(), HasSubstr((folder_ / name).string())) << "byte " << byte;
      EXPECT_THAT(verify_checkpoint(root_.path()).faults, ::testing::Contains(HasSubstr(name))) << "byte " << byte;
      put_file(folder_ / name, content);
    }
  }
  EXPECT_THAT(verify_checkpoint(root_.path()).faults, IsEmpty()) << "all was put back";
}

// With a matching checksum, which a forger can compute.
TEST_F(DamagedCheckpointTest, NumbersThatNoTrainingHasAreRefusedBeforeAnythingIsPlanned) {
  const Manifest whole = read_manifest(folder_);
  const auto message = [&](const auto& change) {
    Manifest made_up = whole;
    change(made_up);
    write_manifest(folder_, made_up);
    return message_of<UserError>([&] { read_checkpoint_info(folder_); });
  };
  EXPECT_THAT(message([](Manifest& m) { m.state.consumed_samples = std::int64_t{1} << 62; }),
              HasSubstr("\"consumed_samples\" must be an integer from 0"));
  EXPECT_THAT(message([](Manifest& m) { m.state.iteration = std::int64_t{1} << 40; }),
              HasSubstr("\"iteration\" must be"));
  EXPECT_THAT(message([](Manifest& m) { m.model.num_layers = 16384; }), HasSubstr("contradicts itself"));
  EXPECT_THAT(message([](Manifest& m) {
                m.model.num_layers = 16384;
                for (auto& [name, file] : m.files) file.values = std::int64_t{1} << 60;
              }),
              HasSubstr("contradicts itself"));
}

TEST_F(DamagedCheckpointTest, NumbersThatJsonHasNotAreReadAsTheyWereWritten) {
  Manifest manifest = read_manifest(folder_);
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  manifest.state.values = {{"a", nan}, {"b", -nan}, {"c", infinity}, {"d", -infinity}};
  write_manifest(folder_, manifest);
  const std::map<std::string, double> values = read_manifest(folder_).state.values;
  ASSERT_EQ(values.size(), 4U);
  for (const auto& [name, value] : manifest.state.values) {
    EXPECT_EQ(std::isnan(values.at(name)), std::isnan(value)) << name;
    EXPECT_EQ(std::isinf(values.at(name)), std::isinf(value)) << name;
    EXPECT_EQ(std::signbit(values.at(name)), std::signbit(value)) << name;
  }
}

TEST_F(DamagedCheckpointTest, FilesElsewhereAreRefused) {
  const Manifest whole = read_manifest(folder_);
  for (const char* name : {"../model.safetensors", "/etc/passwd", ".hidden", "a/b", ""}) {
    Manifest manifest = whole;
    manifest.files[name] = whole.files.begin()->second;
    write_manifest(folder_, manifest);
    EXPECT_THAT(message_of<UserError>([&] { read_manifest(folder_); }),
                HasSubstr(fmt::format("lists '{}', which is not the name of a file beside it", name)));
  }
}

TEST_F(DamagedCheckpointTest, ATensorThatIsDamagedIsNamed) {
  const std::string content = bytes_of_file(folder_ / "optimizer.safetensors");
  flip_bit(folder_ / "optimizer.safetensors", content.size() - 1, 0);
  EXPECT_THAT(load_message(), AllOf(HasSubstr("'final_norm.bias.moment2'"), HasSubstr("iter_0000001' is intact")));
  const CheckpointVerification report = verify_checkpoint(folder_);
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_THAT(report.faults[0], HasSubstr("'final_norm.bias.moment2'"));
}

TEST_F(DamagedCheckpointTest, OnlyACheckpointThatIsIntactIsRecommended) {
  flip_bit(root_ / "iter_0000001" / "model.safetensors", 5000, 3);
  flip_bit(folder_ / "model.safetensors", 5000, 3);
  EXPECT_THAT(load_message(), AllOf(HasSubstr("is damaged"), ::testing::Not(HasSubstr("intact"))));
}

TEST_F(DamagedCheckpointTest, TheEarlierOneIsRecommendedToAReaderThroughALink) {
  link_best(root_.path(), 2);
  flip_bit(folder_ / "model.safetensors", 5000, 3);
  const auto load_best = [&] { load_checkpoint(root_ / "best", small_config(), model_.parameters, *model_.backend); };
  EXPECT_THAT(message_of<UserError>(load_best), HasSubstr("iter_0000001' is intact"));
}

TEST_F(DamagedCheckpointTest, EarlierIsBySizeOfTheNumberNotByName) {
  save(9999999);
  folder_ = save(10000000);
  flip_bit(folder_ / "model.safetensors", 5000, 3);
  EXPECT_THAT(load_message(), HasSubstr("iter_9999999' is intact"));
  flip_bit(folder_ / "model.safetensors", 5000, 3);
  flip_bit(root_ / "iter_9999999" / "model.safetensors", 5000, 3);
  const auto load_earlier = [&] {
    load_checkpoint(root_ / "iter_9999999", small_config(), model_.parameters, *model_.backend);
  };
  EXPECT_THAT(message_of<UserError>(load_earlier), HasSubstr("iter_0000002' is intact"));
}

TEST_F(DamagedCheckpointTest, FilesCutShortGrownOrGoneAreNamed) {
  for (const auto& [name, content] : all_files(folder_)) {
    for (const std::string& wrong : {std::string(), content.substr(0, content.size() / 2), content + "x"}) {
      put_file(folder_ / name, wrong);
      const std::string message = load_message();
      EXPECT_THAT(message, HasSubstr((folder_ / name).string())) << wrong.size() << " bytes";
      if (name.ends_with(".safetensors")) {
        EXPECT_THAT(message, HasSubstr("were written")) << wrong.size() << " bytes";
      }
    }
    fs::remove(folder_ / name);
    EXPECT_THAT(load_message(), AllOf(HasSubstr((folder_ / name).string()), HasSubstr("is missing"),
                                      HasSubstr("iter_0000001' is intact")));
    EXPECT_FALSE(verify_checkpoint(root_.path()).intact());
    put_file(folder_ / name, content);
  }
}

// Beside it lie the checkpoints that a damaged tracker is most likely to name.
TEST_F(DamagedCheckpointTest, ADamagedTrackerNeverLeadsToAnotherCheckpoint) {
  for (const std::int64_t iteration : {0, 3, 6, 10, 18, 20, 21, 22, 25, 29, 2}) save(iteration);
  const fs::path tracker = root_ / "latest_checkpointed_iteration.txt";
  const std::string content = bytes_of_file(tracker);
  const auto expect_refused = [&](const std::string& wrong) {
    put_file(tracker, wrong);
    EXPECT_THAT(load_message(), AllOf(HasSubstr(tracker.string()), HasSubstr("is damaged"), HasSubstr("iter_0000029")))
        << wrong;
  };
  for (std::size_t byte = 0; byte < content.size(); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string wrong = content;
      wrong[byte] = static_cast<char>(wrong[byte] ^ (1 << bit));
      expect_refused(wrong);
    }
    expect_refused(content.substr(0, byte));
  }
  for (const std::string& wrong : {content + "\n", "2" + content, std::string("2\n"), std::string("release\n")}) {
    expect_refused(wrong);
  }
  put_file(tracker, content);
  EXPECT_THAT(load_message(), HasSubstr("nothing was thrown"));
}

TEST_F(DamagedCheckpointTest, InfoOfADamagedCheckpointIsRefusedToo) {
  put_file(folder_ / "checkpoint.json", "{}");
  EXPECT_THAT(message_of<UserError>([&] { read_checkpoint_info(root_.path()); }), HasSubstr("checkpoint.json"));
}

}  // namespace
}  // namespace teratron::testing

// Saves beside the caller: nothing can be seen before the release, then it is what save_checkpoint writes; errors of
// writing come to the caller.
#include "checkpoint/native/background_save.h"

#include <gmock/gmock.h>

#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/host/threads.h"
#include "checkpoint/damage.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/random_model.h"
#include "checkpoint/tensor_parts.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Saver {
 public:
  explicit Saver(const RandomModel& model)
      : model_(model),
        save_(bytes_of_copied_checkpoint(model.parameters, DType::kF32)),
        mesh_(make_single_rank_mesh()) {}

  void begin(const fs::path& root, std::int64_t iteration, const SaveOptions& options = {}) {
    save_.begin(root, model_.config, model_.parameters, *model_.backend, some_state(iteration), options, mesh_);
  }
  BackgroundSave& operator*() { return save_; }

 private:
  const RandomModel& model_;
  BackgroundSave save_;
  Mesh mesh_;
};

TEST(BackgroundSave, IsTheCopyByteForByteWhateverChangesAfterwards) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomModel model(small_config());
  {
    Saver saver(model);
    for (std::int64_t iteration = 1; iteration <= 5; ++iteration) {
      const SaveOptions options{.settings = "a = 1\n", .keep_last = 2, .best = iteration == 2};
      model.fill(static_cast<std::uint64_t>(iteration));
      save_checkpoint(folder / "whole", model.config, model.parameters, *model.backend, some_state(iteration), options);
      saver.begin(folder / "copied", iteration, options);
      model.fill(99);  // the next update
      // Time for a thread that does not wait for the release.
      if (iteration == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
      EXPECT_EQ((*saver).finished(), std::nullopt);
      EXPECT_EQ(fs::exists(iteration_folder(folder / "copied", iteration)), false);
      (*saver).release();
      EXPECT_EQ((*saver).wait(), iteration_folder(folder / "copied", iteration));
      EXPECT_EQ((*saver).wait(), std::nullopt);
      EXPECT_EQ(all_files(folder / "copied"), all_files(folder / "whole"));
    }
  }
  EXPECT_THAT(iterations_in(folder / "copied"), ElementsAre(2, 4, 5));  // 2 is the best one
}

TEST(BackgroundSave, WithoutReleaseNothingRemainsAndWithItEvenAnAbandonedOneStands) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomModel model(small_config());
  {
    Saver saver(model);
    saver.begin(folder.path(), 1);
  }
  EXPECT_EQ(folder.entries(), 0U);
  {
    Saver saver(model);
    saver.begin(folder.path(), 2);
    (*saver).release();
  }
  EXPECT_THAT(iterations_in(folder.path()), ElementsAre(2));
  EXPECT_TRUE(verify_checkpoint(folder.path()).intact());
}

TEST(BackgroundSave, AnErrorOfWritingComesToTheCallerAndTheNextSaveSucceeds) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomModel model(small_config());
  Saver saver(model);
  saver.begin(folder.path(), 1);
  const fs::path obstacle = folder / (std::string(kTrackerFile) + ".partial");
  fs::create_directory(obstacle);
  (*saver).release();
  EXPECT_THAT(message_of<EnvironmentError>([&] { (*saver).wait(); }), HasSubstr(std::string(kTrackerFile)));
  fs::remove(obstacle);
  saver.begin(folder.path(), 2);
  (*saver).release();
  EXPECT_EQ((*saver).wait(), iteration_folder(folder.path(), 2));
}

// In any of the threads' shares, whose sizes differ.
TEST(BackgroundSave, AValueThatIsNotFiniteIsRefusedBeforeTheUpdateGoesOn) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomModel model(small_config());
  Saver saver(model);
  const int threads = thread_count();
  std::int64_t iteration = 0;
  for (const Parameter* parameter : model.parameters) {
    set_thread_count(1 + static_cast<int>(++iteration % 3));
    const TensorRef moment = parameter->state.slots[1].values;
    std::vector<float> values(static_cast<std::size_t>(moment.elements()), 0.5F);
    values.front() = std::numeric_limits<float>::quiet_NaN();
    model.backend->upload(moment, values.data());
    EXPECT_THAT(message_of<UserError>([&] { saver.begin(folder.path(), iteration); }),
                HasSubstr("'" + parameter->name + ".moment2' holds values that are infinite or not a number"));
    EXPECT_EQ(folder.entries(), 0U);
    model.fill(1);
  }
  set_thread_count(threads);
  saver.begin(folder.path(), iteration);
  (*saver).release();
  EXPECT_EQ((*saver).wait(), iteration_folder(folder.path(), iteration));
}

// All threads copy tensors that lie whole, and copy them once.
TEST(BackgroundSave, EveryTensorOfOneTensorParallelRankLiesWhole) {
  RandomModel model(small_config());
  for (const Parameter* parameter : model.parameters) EXPECT_TRUE(lies_whole(*parameter)) << parameter->name;
  int cut = 0;
  make_model(model.config, {.rank = 0, .size = 3})->visit([&](const Parameter& parameter) {
    if (parameter.is_split()) ++cut;
    EXPECT_EQ(lies_whole(parameter), !parameter.is_split()) << parameter.name;
  });
  EXPECT_GT(cut, 0);
}

}  // namespace
}  // namespace teratron::testing

// Saves that something ends half-way: a full disk, a file that may not grow, a folder that may not be written.
// The checkpoint before stays current and intact, and nothing half-written can be seen.
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "base/error.h"
#include "base/files/file.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void save(const fs::path& root, const RandomModel& model, std::int64_t iteration) {
  save_checkpoint(root, small_config(), model.parameters, *model.backend, some_state(iteration));
}

// No file may grow beyond `bytes` while this lives: as a full disk, but at a byte of our choice.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

// A file system that cannot exchange two names has neither for a moment, in which the process may be killed.
TEST(InterruptedSave, ACheckpointThatWasToBeReplacedComesBackUnlessItWas) {
  const TemporaryFolder folder;
  RandomModel model(small_config());
  model.fill(1);
  save(folder.path(), model, 1);
  const auto before = all_files(folder.path());
  const fs::path place = folder / "iter_0000001", away = folder / "iter_0000001.replaced.partial";
  fs::rename(place, away);
  fs::create_directory(folder / "iter_0000001.partial");
  EXPECT_THAT(message_of<UserError>([&] { find_checkpoint(folder.path()); }),
              HasSubstr("rename '" + away.string() + "' to '" + place.string() + "'"));
  { const FolderInProgress another(folder / "iter_0000002"); }
  EXPECT_EQ(all_files(folder.path()), before);
  fs::copy(place, away);
  { const FolderInProgress another(folder / "iter_0000002"); }
  EXPECT_EQ(all_files(folder.path()), before);
}

TEST(InterruptedSave, AFileThatMayNotGrowLeavesEverythingAsItWas) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomModel model(small_config());
  model.fill(1);
  save(folder.path(), model, 1);
  const auto before = all_files(folder.path());
  const std::size_t largest = before.at("iter_0000001/optimizer.safetensors").size();
  int failed = 0;
  for (rlim_t limit = 0; limit < largest; limit += largest / 40) {
    const std::string message = message_of<EnvironmentError>([&] {
      const FileSizeLimit guard(limit);
      save(folder.path(), model, 2);
    });
    EXPECT_THAT(message, HasSubstr("cannot write")) << limit;
    EXPECT_EQ(all_files(folder.path()), before) << limit;
    ++failed;
  }
  EXPECT_GE(failed, 40);
  EXPECT_EQ(load_checkpoint(folder.path(), small_config(), model.parameters, *model.backend), some_state(1));
}

TEST(InterruptedSave, AFullDiskIsAnEnvironmentErrorThatLeavesEverythingAsItWas) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=192k") != 0) {
    GTEST_SKIP() << "mounting a small disk needs root";
  }
  RandomModel model(small_config());
  model.fill(1);
  save(folder.path(), model, 1);
  const auto before = all_files(folder.path());
  std::string message;
  for (std::int64_t iteration = 2; iteration < 20; ++iteration) {
    message = message_of<EnvironmentError>([&] { save(folder.path(), model, iteration); });
    if (message.find("nothing was thrown") == std::string::npos) break;
  }
  EXPECT_THAT(message, HasSubstr("No space left on device"));
  EXPECT_TRUE(verify_checkpoint(folder.path()).intact());
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    EXPECT_NE(entry.path().extension(), ".partial");
  }
  ::umount(folder.path().c_str());
}

TEST(InterruptedSave, AFolderThatIsAFileOrMayNotBeWrittenIsAnError) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  const RandomModel model(small_config());
  put_file(folder / "file", "");
  EXPECT_THAT(message_of<UserError>([&] { save(folder / "file", model, 1); }), HasSubstr("file"));
  EXPECT_THAT(message_of<UserError>([&] { save(folder / "file" / "run", model, 1); }), HasSubstr("run"));

  save(folder / "run", model, 1);
  ::chmod((folder / "run").c_str(), 0555);
  ::chmod(folder.path().c_str(), 0755);
  const bool root = ::geteuid() == 0;
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root is not held back by permissions, and cannot be left";
  const std::string message = message_of<EnvironmentError>([&] { save(folder / "run", model, 2); });
  EXPECT_EQ(::seteuid(root ? 0 : ::geteuid()), 0);
  EXPECT_THAT(message, HasSubstr("Permission denied"));
  EXPECT_TRUE(verify_checkpoint(folder / "run").intact());
  ::chmod((folder / "run").c_str(), 0755);
}

TEST(InterruptedImport, ThatWasKilledBeforeItsLastStepIsFinishedByTheSameOneAlone) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  const fs::path golden = fs::path(TERATRON_SOURCE_DIR) / "tests/golden", run = folder / "run";
  import_from_hugging_face(golden / "gpt2_tiny", run);
  const auto whole = all_files(run);
  fs::remove(run / kTrackerFile);
  const auto unfinished = all_files(run);
  EXPECT_THAT(message_of<UserError>([&] { import_from_hugging_face(golden / "bert_tiny", run); }),
              HasSubstr("holds a checkpoint already"));
  EXPECT_EQ(all_files(run), unfinished);
  import_from_hugging_face(golden / "gpt2_tiny", run);
  EXPECT_EQ(all_files(run), whole);
  EXPECT_THAT(message_of<UserError>([&] { import_from_hugging_face(golden / "gpt2_tiny", run); }),
              HasSubstr("holds a checkpoint already"));
}

}  // namespace
}  // namespace teratron::testing

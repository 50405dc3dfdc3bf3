// Checkpoints whose folders were moved, linked, renamed, or may not be read.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "checkpoint/adapter_base.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/native/checkpoint.h"
#include "checkpoint/native/folder_changes.h"
#include "checkpoint/native/folders.h"
#include "checkpoint/native/manifest.h"
#include "checkpoint/native/reshard.h"
#include "checkpoint/random_model.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CheckpointNames : public ::testing::Test {
 protected:
  CheckpointNames() : model_(small_config()) {
    model_.fill(1);
    for (const std::int64_t iteration : {20, 30}) {
      save_checkpoint(root(), small_config(), model_.parameters, *model_.backend, some_state(iteration));
    }
  }
  fs::path root() const { return folder_ / "run"; }
  fs::path last() const { return iteration_folder(root(), 30); }

  // Messages of each way to read a checkpoint at `path`.
  std::vector<std::string> messages_of_readers(const fs::path& path) {
    const std::vector<std::function<void()>> readers = {
        [&] { read_checkpoint_info(path); },
        [&] { verify_checkpoint(path); },
        [&] { load_checkpoint(path, small_config(), model_.parameters, *model_.backend); },
        [&] { load_checkpoint(path, small_config(), model_.parameters, *model_.backend, {.optimizer = false}); },
        [&] { reshard_checkpoint(path, folder_ / "resharded", 0); },
        [&] { export_to_hugging_face(path, folder_ / "hf"); }};
    std::vector<std::string> messages;
    for (const auto& read : readers) messages.push_back(message_of<UserError>(read));
    return messages;
  }

  const TemporaryFolder folder_;
  RandomModel model_;
};

// The effective user is another one than root while it lives; root may read everything.
class NotRoot {
 public:
  NotRoot() : was_root_(::geteuid() == 0) {
    if (was_root_ && ::seteuid(65534) != 0) was_root_ = false;
  }
  ~NotRoot() {
    if (!was_root_) return;
    EXPECT_EQ(::seteuid(0), 0);
  }
  NotRoot(const NotRoot&) = delete;
  NotRoot& operator=(const NotRoot&) = delete;
  static bool is_possible() { return ::geteuid() != 0 || (::seteuid(65534) == 0 && ::seteuid(0) == 0); }

 private:
  bool was_root_;
};

TEST_F(CheckpointNames, AreThoseOfAllLinksOnTheWay) {
  fs::create_directory(folder_ / "bulk");
  fs::rename(last(), folder_ / "bulk" / "iter_0000030");
  fs::create_directory_symlink("../bulk/iter_0000030", last());
  link_best(root(), 30);
  const auto roots = [](const fs::path& path) {
    std::vector<fs::path> all;
    for (const CheckpointName& name : names_of(path)) {
      EXPECT_EQ(name.iteration, 30);
      all.push_back(fs::weakly_canonical(name.root));
    }
    return all;
  };
  const fs::path here = fs::canonical(root()), bulk = fs::canonical(folder_ / "bulk");
  EXPECT_EQ(roots(last()), (std::vector{here, bulk, bulk}));
  EXPECT_EQ(roots(root() / "best"), (std::vector{here, bulk, bulk}));
  EXPECT_EQ(roots(folder_ / "bulk" / "iter_0000030" / ""), (std::vector{bulk, bulk}));
  EXPECT_TRUE(names_of(root()).empty());
  EXPECT_EQ(iterations_in(root()), (std::vector<std::int64_t>{20, 30}));
  EXPECT_TRUE(verify_checkpoint(root()).intact());
}

TEST_F(CheckpointNames, LeadToALinkedOneThatIsSetAside) {
  for (const bool is_relative : {true, false}) {
    const TemporaryFolder other;
    const fs::path run = other / "run", link = iteration_folder(run, 30);
    fs::copy(root(), run, fs::copy_options::recursive);
    fs::create_directory(other / "bulk");
    fs::rename(link, other / "bulk" / "moved");
    fs::create_directory_symlink(is_relative ? "../bulk/moved" : other / "bulk" / "moved", link);
    const std::vector<fs::path> aside = set_aside_later(run, 20);
    ASSERT_EQ(aside.size(), 1U);
    EXPECT_TRUE(verify_checkpoint(aside[0]).intact());
    EXPECT_TRUE(fs::exists(other / "bulk" / "moved" / "model.safetensors"));
    EXPECT_EQ(iterations_in(run), (std::vector<std::int64_t>{20}));
  }
}

TEST_F(CheckpointNames, SayThatALinkLeadsNowhere) {
  fs::remove_all(last());
  fs::create_directory_symlink("/nowhere/iter_0000030", last());
  EXPECT_THAT(message_of<UserError>([&] { read_checkpoint_info(root()); }),
              AllOf(HasSubstr("'/nowhere/iter_0000030', which is not there"), HasSubstr("iter_0000020")));
}

TEST_F(CheckpointNames, ThatAreNotOfTheirIterationAreRefusedByAllReaders) {
  const fs::path renamed = iteration_folder(root(), 40);
  fs::rename(last(), renamed);
  for (const std::string& message : messages_of_readers(renamed)) {
    EXPECT_THAT(message, AllOf(HasSubstr(renamed.string()), HasSubstr("holds the checkpoint of iteration 30"),
                               HasSubstr("call it 'iter_0000030'"), Not(HasSubstr("intact"))));
  }
  write_tracker(root(), 40);
  for (const std::string& message : messages_of_readers(root())) {
    EXPECT_THAT(message, HasSubstr("holds the checkpoint of iteration 30"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "hf"));
  // Another name than iter_... says nothing.
  fs::rename(renamed, root() / "before_the_crash");
  EXPECT_TRUE(verify_checkpoint(root() / "before_the_crash").intact());
}

TEST_F(CheckpointNames, NeverCallUnreadableOnesDamaged) {
  if (!NotRoot::is_possible()) GTEST_SKIP() << "root is not held back by permissions, and cannot be left";
  ::chmod(folder_.path().c_str(), 0755);
  const std::vector<std::pair<fs::path, mode_t>> closed = {{last(), 0700},
                                                           {last() / "checkpoint.json", 0600},
                                                           {last() / "model.safetensors", 0600},
                                                           {last() / "optimizer.safetensors", 0600},
                                                           {root(), 0700}};
  const fs::path out = folder_ / "out";
  fs::create_directory(out);
  for (const auto& [path, mode] : closed) {
    const mode_t open = fs::is_directory(path) ? 0755 : 0644;
    ::chmod(path.c_str(), ::geteuid() == 0 ? mode : 0);
    for (const fs::path& way : {root(), last()}) {
      const NotRoot user;
      std::vector<std::string> messages = {
          message_of<UserError>([&] { verify_checkpoint(way); }),
          message_of<UserError>([&] { load_checkpoint(way, small_config(), model_.parameters, *model_.backend); })};
      for (const std::string& message : messages) {
        EXPECT_THAT(message, AllOf(HasSubstr("cannot be read: Permission denied"), HasSubstr("may be intact"),
                                   Not(HasSubstr("is damaged")), Not(HasSubstr("missing")),
                                   Not(HasSubstr("goes on from there"))))
            << path << " by " << way;
      }
    }
    ::chmod(path.c_str(), open);
  }
}

TEST_F(CheckpointNames, NeverCallABaseMissingThatCannotBeLookedAt) {
  if (!NotRoot::is_possible()) GTEST_SKIP() << "root is not held back by permissions, and cannot be left";
  ::chmod(folder_.path().c_str(), 0755);
  const fs::path closed = folder_ / "closed";
  fs::create_directory(closed);
  fs::rename(root(), closed / "base");
  ::chmod(closed.c_str(), ::geteuid() == 0 ? 0700 : 0);
  std::string message;
  {
    const NotRoot user;
    message =
        message_of<UserError>([&] { require_base(folder_ / "adapted", {.folder = closed / "base", .checksum = {}}); });
  }
  ::chmod(closed.c_str(), 0755);
  EXPECT_THAT(message, AllOf(HasSubstr("cannot be read: Permission denied"), Not(HasSubstr("not there"))));
}

// The last one is damaged, the one before it cannot be read.
TEST_F(CheckpointNames, NameAnUnreadableOneBeforeTheyAdviseAnEarlierOne) {
  if (!NotRoot::is_possible()) GTEST_SKIP() << "root is not held back by permissions, and cannot be left";
  ::chmod(folder_.path().c_str(), 0755);
  save_checkpoint(root(), small_config(), model_.parameters, *model_.backend, some_state(10));
  write_tracker(root(), 30);
  flip_bit(last() / "model.safetensors", 5000, 3);
  const fs::path closed = iteration_folder(root(), 20);
  ::chmod(closed.c_str(), ::geteuid() == 0 ? 0700 : 0);
  std::string message;
  {
    const NotRoot user;
    message =
        message_of<UserError>([&] { load_checkpoint(root(), small_config(), model_.parameters, *model_.backend); });
  }
  ::chmod(closed.c_str(), 0755);
  EXPECT_THAT(message, AllOf(HasSubstr("is damaged"), HasSubstr("iter_0000020"), HasSubstr("Permission denied"),
                             Not(HasSubstr("iter_0000010"))));
}

}  // namespace
}  // namespace teratron::testing

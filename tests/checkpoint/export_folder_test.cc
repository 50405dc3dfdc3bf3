// A model for Hugging Face whose writing was ended leaves a folder that can be written to again, and no other is
// touched.
#include "checkpoint/hugging_face/export_folder.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "checkpoint/damage.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/sentence_transformer.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ExportFolders : public ::testing::Test {
 protected:
  fs::path out() const { return folder_ / "out"; }
  const TemporaryFolder folder_;
};

TEST_F(ExportFolders, KeepsWhatIsFinishedAndNothingElse) {
  {
    ExportFolder folder(out(), {"a", "b"});
    put_file(out() / "a", "1");
    put_file(out() / "b.partial", "2");
  }
  EXPECT_FALSE(fs::exists(out()));
  fs::create_directory(out());
  { const ExportFolder folder(out(), {"a"}); }
  EXPECT_TRUE(fs::is_empty(out()));  // it was there before
  ExportFolder folder(out(), {"a"});
  put_file(out() / "a", "1");
  folder.finish();
  EXPECT_EQ(all_files(out()), (std::map<std::string, std::string>{{"a", "1"}}));
  EXPECT_THAT(message_of<UserError>([&] { ExportFolder(out(), {"a"}); }), HasSubstr("is not empty, it holds 'a'"));
}

TEST_F(ExportFolders, ASecondWriterIsRefusedAndTheFirstOnesFilesStay) {
  ExportFolder first(out(), {"a"});
  put_file(out() / "a", "1");
  const auto before = all_files(out());
  EXPECT_THAT(message_of<UserError>([&] { ExportFolder(out(), {"a"}); }), HasSubstr("another process"));
  EXPECT_EQ(all_files(out()), before);
}

TEST_F(ExportFolders, AreWrittenAnewAfterAKillUnlessOthersPutSomethingThere) {
  const std::string unfinished(ExportFolder::kUnfinished);
  for (const std::string& other : {std::string(), std::string("notes.txt"), std::string("model.bin")}) {
    const TemporaryFolder parent;
    const fs::path target = parent / "out";
    put_file(parent / "precious", "x");
    const pid_t child = ::fork();
    if (child == 0) {
      const ExportFolder folder(target, {"a", "b"});
      put_file(target / "a", "1");
      put_file(target / "b.partial", "2");
      ::kill(::getpid(), SIGKILL);
    }
    ::waitpid(child, nullptr, 0);
    ASSERT_EQ(all_files(target).size(), 3U);
    if (other.empty()) {
      ExportFolder folder(target, {"c"});
      EXPECT_EQ(all_files(target).size(), 1U);
      put_file(target / "c", "3");
      folder.finish();
      EXPECT_EQ(all_files(target), (std::map<std::string, std::string>{{"c", "3"}}));
    } else {
      put_file(target / other, "mine");
      const auto before = all_files(target);
      EXPECT_THAT(message_of<UserError>([&] { ExportFolder(target, {"c"}); }), HasSubstr("it holds '" + other + "'"));
      EXPECT_EQ(all_files(target), before);
    }
    EXPECT_EQ(bytes_of_file(parent / "precious"), "x");
  }
}

// Names of other folders in the list, a link or a folder in its place.
TEST_F(ExportFolders, DeletesNothingElsewhereWhateverTheListSays) {
  put_file(folder_ / "precious", "x");
  fs::create_directory(out());
  put_file(out() / ExportFolder::kUnfinished, "../precious\n..\n.\n\n" + (folder_ / "precious").string() + "\n");
  { const ExportFolder folder(out(), {"a"}); }
  EXPECT_EQ(bytes_of_file(folder_ / "precious"), "x");
  fs::create_symlink(folder_ / "precious", out() / ExportFolder::kUnfinished);
  EXPECT_THAT(message_of<UserError>([&] { ExportFolder(out(), {"a"}); }), HasSubstr("is not empty"));
  EXPECT_EQ(bytes_of_file(folder_ / "precious"), "x");
}

// A sentence-transformer has a file one folder below.
TEST_F(ExportFolders, AFileBelowGoesAndComesWithItsFolder) {
  {
    ExportFolder folder(out(), {"a", kPoolingFile});
    fs::create_directory((out() / kPoolingFile).parent_path());
    put_file(out() / kPoolingFile, "1");
  }
  EXPECT_FALSE(fs::exists(out()));
  fs::create_directory(out());
  put_file(out() / ExportFolder::kUnfinished, std::string(kPoolingFile) + "\n");
  fs::create_directory((out() / kPoolingFile).parent_path());
  put_file(out() / kPoolingFile, "1");
  { const ExportFolder folder(out(), {"a"}); }
  EXPECT_TRUE(fs::is_empty(out()));
  // A link in its place leads elsewhere.
  fs::create_directory(folder_ / "other");
  put_file(folder_ / "other/config.json", "x");
  put_file(out() / ExportFolder::kUnfinished, std::string(kPoolingFile) + "\n");
  fs::create_directory_symlink(folder_ / "other", (out() / kPoolingFile).parent_path());
  EXPECT_THAT(message_of<UserError>([&] { ExportFolder(out(), {"a"}); }), HasSubstr("is not empty"));
  EXPECT_EQ(bytes_of_file(folder_ / "other/config.json"), "x");
}

// Each time the process is killed at a random moment; the next one starts from what that has left.
TEST_F(ExportFolders, AConversionThatWasKilledAtAnyMomentIsDoneAnew) {
  import_from_hugging_face(fs::path(TERATRON_SOURCE_DIR) / "tests/golden/gpt2_tiny", folder_ / "run");
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun = Clock::now();
  export_to_hugging_face(folder_ / "run", folder_ / "whole");
  const std::chrono::duration<double> one_conversion = Clock::now() - begun;
  const std::uint64_t longest = fs::file_size(folder_ / "whole" / "model.safetensors");
  RandomSequence random({.seed = 3});
  int left = 0;
  // The system ends every other conversion at a byte of its weights, the others end at some time.
  for (int kill = 0; kill < 40; ++kill) {
    const bool at_a_byte = kill % 2 == 0;
    const rlimit bytes{random.below(longest), RLIM_INFINITY};
    const double moment = random.uniform();
    const pid_t child = ::fork();
    if (child == 0) {
      if (at_a_byte) ::setrlimit(RLIMIT_FSIZE, &bytes);
      set_thread_count(1);
      for (;;) {
        export_to_hugging_face(folder_ / "run", out());
        fs::remove_all(out());
      }
    }
    if (!at_a_byte) {
      std::this_thread::sleep_for(3 * moment * one_conversion);
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), at_a_byte ? SIGXFSZ : SIGKILL);
    if (fs::exists(out() / ExportFolder::kUnfinished)) {
      ++left;
      EXPECT_NO_THROW(export_to_hugging_face(folder_ / "run", out()));
      EXPECT_EQ(all_files(out()), all_files(folder_ / "whole"));
    }
    fs::remove_all(out());
  }
  EXPECT_GE(left, 20) << "all that ended at a byte";
}

TEST_F(ExportFolders, AFullDiskLeavesNone) {
  import_from_hugging_face(fs::path(TERATRON_SOURCE_DIR) / "tests/golden/gpt2_tiny", folder_ / "run");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, SIG_IGN);
  for (const rlim_t limit : {rlim_t{0}, rlim_t{10}, rlim_t{1000}, rlim_t{20000}}) {
    const rlimit small{limit, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    const std::string message =
        message_of<EnvironmentError>([&] { export_to_hugging_face(folder_ / "run", folder_ / "new" / "hf"); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_THAT(message, HasSubstr("cannot write")) << limit;
    EXPECT_FALSE(fs::exists(folder_ / "new" / "hf")) << limit;
  }
  ::signal(SIGXFSZ, SIG_DFL);
}

}  // namespace
}  // namespace teratron::testing

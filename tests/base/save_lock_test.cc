// One run at a time saves to a folder, with or without locks of its file system, and a lock of a killed run holds
// nobody up.
#include "base/files/save_lock.h"

#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>

#include "base/error.h"
#include "checkpoint/damage.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

int no_locks(int) {
  errno = ENOLCK;
  return -1;
}

SaveLockSettings noting(std::vector<std::string>& notices) {
  return {.lock = {}, .notice = [&notices](const std::string& text) { notices.push_back(text); }};
}

constexpr const char* kFarOwner =
    R"({"user":"ada","host":"another-host","process":77,"since":"2026-01-02 03:04:05 UTC"})";

class SaveLocks : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / SaveLock::kFile; }
  TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

TEST_F(SaveLocks, ASecondIsRefusedWithTheFirstOnesNameAndTheFileGoesWithTheFirst) {
  {
    const SaveLock first(folder_.path());
    const auto before = all_files(folder_.path());
    std::array<char, 256> host{};
    ::gethostname(host.data(), host.size());
    EXPECT_THAT(message_of<UserError>([&] { SaveLock{folder_.path()}; }),
                AllOf(HasSubstr(folder_.path().string()), HasSubstr(std::string(" on ") + host.data()),
                      HasSubstr(fmt::format("process {}", ::getpid())), HasSubstr("begun 20"), HasSubstr("--save")));
    EXPECT_EQ(all_files(folder_.path()), before);
  }
  EXPECT_EQ(folder_.entries(), 0U);
  const SaveLock again(folder_.path());
}

TEST_F(SaveLocks, LetInOneOfManyThatBeginAtOnce) {
  for (int trial = 0; trial < 20; ++trial) {
    std::atomic<int> held{0}, refused{0}, ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < 4) std::this_thread::yield();
        try {
          const SaveLock lock(folder_.path());
          ++held;
          while (held + refused < 4) std::this_thread::yield();
        } catch (const UserError&) {
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(held, 1);
    EXPECT_EQ(refused, 3);
  }
}

TEST_F(SaveLocks, OneThatWasKilledHoldsNobodyUp) {
  const pid_t child = ::fork();
  if (child == 0) {
    const SaveLock lock(folder_.path());
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(file()));
  const SaveLock lock(folder_.path(), noting(notices_));
  EXPECT_THAT(notices_, IsEmpty());
}

TEST_F(SaveLocks, AFileThatAnotherHostLeftHoldsNobodyUpWhereTheLockIsFree) {
  put_file(file(), kFarOwner);
  const SaveLock lock(folder_.path(), noting(notices_));
  EXPECT_THAT(notices_, IsEmpty());
  EXPECT_THAT(bytes_of_file(file()), Not(HasSubstr("another-host")));
}

TEST_F(SaveLocks, WithoutLocksTheFileAloneKeepsASecondAwayAndSaysSo) {
  SaveLockSettings settings = noting(notices_);
  settings.lock = no_locks;
  {
    const SaveLock first(folder_.path(), settings);
    EXPECT_THAT(notices_.back(), AllOf(HasSubstr(folder_.path().string()), HasSubstr("no locks")));
    EXPECT_THAT(message_of<UserError>([&] { SaveLock(folder_.path(), settings); }), HasSubstr("--save"));
  }
  EXPECT_EQ(folder_.entries(), 0U);
  put_file(file(), kFarOwner);
  EXPECT_THAT(message_of<UserError>([&] { SaveLock(folder_.path(), settings); }),
              AllOf(HasSubstr("a run of ada on another-host (process 77, begun 2026-01-02 03:04:05 UTC)"),
                    HasSubstr("delete '" + file().string() + "'")));
  EXPECT_EQ(bytes_of_file(file()), kFarOwner);
}

TEST_F(SaveLocks, WithoutLocksAKilledRunOfThisHostHoldsNobodyUp) {
  SaveLockSettings settings = noting(notices_);
  settings.lock = no_locks;
  const pid_t child = ::fork();
  if (child == 0) {
    const SaveLock lock(folder_.path(), settings);
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_TRUE(std::filesystem::exists(file()));
  const SaveLock lock(folder_.path(), settings);
}

TEST_F(SaveLocks, TakeAFileOfAnyContent) {
  for (const std::string& text : {std::string("no JSON"), std::string("[]"), std::string("{\"host\": 3}"),
                                  std::string("{\"host\": \"h\", \"process\": \"x\"}"), std::string(9000, 'x')}) {
    put_file(file(), text);
    const SaveLock lock(folder_.path(), noting(notices_));
  }
}

TEST_F(SaveLocks, AFolderThatMayNotBeWrittenIsAnEnvironmentError) {
  EXPECT_THAT(message_of<EnvironmentError>([&] { SaveLock{folder_ / "missing"}; }),
              AllOf(HasSubstr("missing/run.lock"), HasSubstr("--save"), Not(HasSubstr("free some space"))));
  const bool root = ::geteuid() == 0;
  ::chmod(folder_.path().c_str(), 0555);
  if (root && ::seteuid(65534) != 0) GTEST_SKIP() << "root is not held back by permissions, and cannot be left";
  const std::string message = message_of<EnvironmentError>([&] { SaveLock{folder_.path()}; });
  EXPECT_EQ(::seteuid(root ? 0 : ::geteuid()), 0);
  EXPECT_THAT(message, AllOf(HasSubstr("Permission denied"), HasSubstr("check its permissions")));
  ::chmod(folder_.path().c_str(), 0755);
}

TEST_F(SaveLocks, AReadOnlyDiskIsCalledThat) {
  if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", MS_RDONLY, "") != 0) GTEST_SKIP() << "mounting needs root";
  const std::string message = message_of<EnvironmentError>([&] { SaveLock{folder_.path()}; });
  EXPECT_THAT(message, AllOf(HasSubstr("Read-only file system"), HasSubstr("make its disk writable"),
                             Not(HasSubstr("free some space"))));
  ::umount(folder_.path().c_str());
}

// Neither what a link leads to nor a pipe is written to.
TEST_F(SaveLocks, OnlyAFileIsTakenForTheLocksFile) {
  const std::filesystem::path precious = folder_ / "precious";
  put_file(precious, "x");
  const std::vector<std::pair<std::string, std::function<void()>>> kinds = {
      {"is a link", [&] { std::filesystem::create_symlink(precious, file()); }},
      {"is a link", [&] { std::filesystem::create_symlink(folder_ / "absent", file()); }},
      {"is a pipe", [&] { ASSERT_EQ(::mkfifo(file().c_str(), 0644), 0); }},
      {"is a folder", [&] { std::filesystem::create_directory(file()); }}};
  for (const auto& [what, make] : kinds) {
    make();
    EXPECT_THAT(message_of<EnvironmentError>([&] { SaveLock(folder_.path(), noting(notices_)); }),
                AllOf(HasSubstr("run.lock' " + what), HasSubstr("delete it"), Not(HasSubstr("free some space"))));
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::symlink_status(file()))) << what;
    std::filesystem::remove(file());
  }
  std::filesystem::create_directory(file());
  const LockedPlace output{.place = folder_ / "out", .file = file(), .does = "writes", .another = "another place"};
  EXPECT_THAT(message_of<EnvironmentError>([&] { SaveLock(output, noting(notices_)); }),
              HasSubstr("delete it or choose another place"));
  EXPECT_EQ(bytes_of_file(precious), "x");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "absent"));
}

TEST_F(SaveLocks, OneThatCannotBeWrittenLeavesNoFile) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_FSIZE, &none);
    int result = 1;
    try {
      const SaveLock lock(folder_.path());
    } catch (const EnvironmentError&) {
      result = 0;
    }
    ::_exit(result);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(folder_.entries(), 0U);
}

}  // namespace
}  // namespace teratron::testing

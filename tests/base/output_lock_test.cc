// One command at a time writes an output, by whatever name.
#include "base/files/output_lock.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal_of(const fs::path& out) {
  return message_of<UserError>([&] { const OutputLock lock(out); });
}

TEST(OutputLocks, AllNamesOfAPlaceHaveOneLock) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "in");
  fs::create_directory_symlink(folder / "in", folder / "link");
  const fs::path out = folder / "in/out.jsonl";
  fs::create_symlink("in/out.jsonl", folder / "to_out");  // leads to what is not there yet
  fs::create_directory(folder / "model");
  const std::vector<std::pair<fs::path, std::vector<fs::path>>> places = {
      {out, {out, folder / "in/../in/./out.jsonl", folder / "link/out.jsonl", folder / "to_out"}},
      {folder / "model", {folder / "model/", folder / "model/."}},
      {folder / "new", {folder / "new/"}},
  };
  for (const auto& [place, names] : places) {
    {
      const OutputLock held(place);
      for (const fs::path& name : names) {
        EXPECT_THAT(refusal_of(name),
                    AllOf(HasSubstr(fmt::format("process {}", ::getpid())), HasSubstr(" on "), HasSubstr("begun 20"),
                          HasSubstr("writes '" + name.string() + "' already"), HasSubstr("another place")));
      }
      EXPECT_EQ(refusal_of(folder / "in/other.jsonl"), kNoError);
    }
    for (const fs::path& name : names) EXPECT_EQ(refusal_of(name), kNoError);
  }
  EXPECT_EQ(folder.entries(), 4U);  // no lock is left
}

TEST(OutputLocks, DevicesAndPipesHaveNone) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  for (const fs::path& out : {fs::path("-"), fs::path("/dev/null"), folder / "pipe"}) {
    const OutputLock held(out);
    EXPECT_EQ(refusal_of(out), kNoError);
  }
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(OutputLocks, WhereNoFileCanBeMadeTheWriterReportsIt) {
  const TemporaryFolder folder;
  const OutputLock held(folder / "missing/out");
  EXPECT_EQ(refusal_of(folder / "missing/out"), kNoError);
}

TEST(OutputLocks, OneThatWasKilledHoldsNobodyUp) {
  const TemporaryFolder folder;
  const pid_t child = ::fork();
  if (child == 0) {
    const OutputLock lock(folder / "out");
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(folder.entries(), 1U);
  { const OutputLock lock(folder / "out"); }
  EXPECT_EQ(folder.entries(), 0U);
}

// Without a lock of their own, files are whole, whoever wins.
TEST(OutputLocks, FilesOfProcessesThatWriteAtRandomTimesAreWhole) {
  constexpr int kWriters = 4, kTimes = 12;
  constexpr std::size_t kBytes = 3 << 20;
  const TemporaryFolder folder;
  const fs::path out = folder / "out";
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::minstd_rand random(static_cast<unsigned>(writer));
      int failures = 0;
      for (int time = 0; time < kTimes; ++time) {
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
        try {
          write_file_atomically(out, std::string(kBytes, static_cast<char>('a' + writer)));
        } catch (const std::exception&) {
          ++failures;
        }
      }
      ::_exit(failures);
    }
    children.push_back(child);
  }
  int looks = 0, halves = 0;
  while (::waitpid(children.front(), nullptr, WNOHANG) == 0) {
    if (!fs::exists(out)) continue;
    const std::string content = read_file(out);
    ++looks;
    halves += content != std::string(kBytes, content.front());
  }
  for (std::size_t i = 1; i < children.size(); ++i) {
    int status = 0;
    ::waitpid(children[i], &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_GT(looks, 0);
  EXPECT_EQ(halves, 0);
  EXPECT_EQ(folder.entries(), 1U);
}

}  // namespace
}  // namespace teratron::testing

// Disks after a power failure: of small programs whose calls are seen, every state that POSIX allows,
// and no other.
#include "torture/disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/child_program.h"
#include "base/temporary_folder.h"

namespace teratron::torture {
namespace {

using ::testing::UnorderedElementsAre;

class DiskTest : public ::testing::Test {
 protected:
  // Puts "old" into the file f, runs lines of Python in the folder, and draws states after a power failure.
  std::set<Tree> states_after(const std::string& lines, Names names = Names::kAnyOrder) const {
    const std::filesystem::path watched = folder_ / "watched", log = folder_ / "log";
    std::filesystem::create_directories(watched);
    std::filesystem::remove(log);
    write_tree(watched, {{"f", "=old"}});
    Disk disk(watched);
    const std::string begin =
        "import os\n"
        "def put(name, text, synced=False):\n"
        "  d = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC); os.write(d, text)\n"
        "  if synced: os.fsync(d)\n"
        "  os.close(d)\n"
        "def sync_folder(name): d = os.open(name, os.O_DIRECTORY); os.fsync(d); os.close(d)\n"
        "os.chdir('" +
        watched.string() + "')\n";
    const testing::Outcome outcome =
        testing::ChildProgram({"python3", "-c", begin + lines}, {std::string("LD_PRELOAD=") + TERATRON_TORTURE_SHIM,
                                                                 std::string(kFolderVariable) + "=" + watched.string(),
                                                                 std::string(kLogVariable) + "=" + log.string()})
            .wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    disk.replay(log);
    EXPECT_EQ(disk.seen(), read_tree(watched));
    std::set<Tree> states;
    RandomSequence random({.seed = 3});
    for (int i = 0; i < 400; ++i) states.insert(disk.after_power_failure(random, names));
    return states;
  }

  const testing::TemporaryFolder folder_;
};

using Files = Tree;
const std::string kLost = std::string("=") + std::string(3, '\0');

TEST_F(DiskTest, ARenameAndItsBytesThatWereNotSyncedComeInAnyOrder) {
  EXPECT_THAT(states_after("put('p', b'new')\nos.rename('p', 'f')"),
              UnorderedElementsAre(Files{{"f", "=old"}}, Files{{"f", "=old"}, {"p", "=new"}},
                                   Files{{"f", "=old"}, {"p", "="}}, Files{{"f", "=old"}, {"p", kLost}},
                                   Files{{"f", "=new"}}, Files{{"f", "="}}, Files{{"f", kLost}}));
  EXPECT_THAT(states_after("put('p', b'new', True)\nos.rename('p', 'f')"),
              UnorderedElementsAre(Files{{"f", "=old"}}, Files{{"f", "=old"}, {"p", "=new"}}, Files{{"f", "=new"}}));
  EXPECT_THAT(states_after("put('p', b'new', True)\nos.rename('p', 'f')\nsync_folder('.')"),
              UnorderedElementsAre(Files{{"f", "=new"}}));
}

TEST_F(DiskTest, NamesOfAJournalAreLostFromTheEnd) {
  const std::string two = "put('a', b'1', True)\nput('b', b'2', True)";
  const Files none = {{"f", "=old"}}, a = {{"f", "=old"}, {"a", "=1"}}, b = {{"f", "=old"}, {"b", "=2"}},
              both = {{"f", "=old"}, {"a", "=1"}, {"b", "=2"}};
  EXPECT_THAT(states_after(two, Names::kInOrder), UnorderedElementsAre(none, a, both));
  EXPECT_THAT(states_after(two, Names::kAnyOrder), UnorderedElementsAre(none, a, b, both));
}

TEST_F(DiskTest, AFolderIsLostWithAllInItUntilTheFolderAboveIsSynced) {
  const std::string make = "os.mkdir('d')\nput('d/a', b'1', True)\nsync_folder('d')";
  const Files none = {{"f", "=old"}}, all = {{"f", "=old"}, {"d", "/"}, {"d/a", "=1"}};
  EXPECT_THAT(states_after(make), UnorderedElementsAre(none, all));
  EXPECT_THAT(states_after(make + "\nsync_folder('.')"), UnorderedElementsAre(all));
}

TEST_F(DiskTest, AFileThatIsWrittenInPlaceMayBeCut) {
  EXPECT_THAT(states_after("put('f', b'new')"),
              UnorderedElementsAre(Files{{"f", "=old"}}, Files{{"f", "=new"}}, Files{{"f", "="}}, Files{{"f", kLost}}));
}

TEST_F(DiskTest, ADeletionThatWasNotSyncedMayBeUndone) {
  EXPECT_THAT(
      states_after("os.remove('f')\nos.symlink('f', 'l')"),
      UnorderedElementsAre(Files{{"f", "=old"}}, Files{}, Files{{"l", "-> f"}}, Files{{"f", "=old"}, {"l", "-> f"}}));
}

}  // namespace
}  // namespace teratron::torture

// Files are read whole or refused with a reason, and written whole or not at all.
#include "base/files/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/files/free_place.h"
#include "base/files/open_file_name.h"
#include "base/message_of.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Files : public ::testing::Test {
 protected:
  std::filesystem::path in_folder(const char* name) const { return folder_.path() / name; }
  std::filesystem::path make_file(const char* name, std::string_view content) const {
    std::ofstream(in_folder(name), std::ios::binary) << content;
    return in_folder(name);
  }
  TemporaryFolder folder_;
};

// Two bytes more than the read buffer holds, with every byte value.
std::string large_content() {
  std::string content((std::size_t{1} << 20) + 2, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7 + i / 256);
  return content;
}

TEST_F(Files, ReadFileReturnsEveryByte) {
  for (const std::string& content : {std::string(), std::string("a\0b\n", 4), large_content()}) {
    EXPECT_TRUE(read_file(make_file("f", content)) == content) << content.size();
  }
}

TEST_F(Files, AMapHoldsEveryByteAndAnEmptyFileNone) {
  for (const std::string& content : {std::string(), std::string("a\0b\n", 4), large_content()}) {
    EXPECT_TRUE(MappedFile(make_file("f", content)).text() == content) << content.size();
  }
}

TEST_F(Files, AMapMovesWithItsBytes) {
  MappedFile first(make_file("a", "first"));
  const MappedFile moved = std::move(first);
  EXPECT_EQ(moved.text(), "first");
  EXPECT_EQ(moved.path(), in_folder("a"));
}

TEST_F(Files, NameUnreadableFilesWithTheReason) {
  const auto missing = in_folder("missing");
  const auto expected = AllOf(HasSubstr(missing.string()), HasSubstr("No such file"));
  EXPECT_THAT(message_of<UserError>([&] { read_file(missing); }), expected);
  EXPECT_THAT(message_of<UserError>([&] { MappedFile{missing}; }), expected);
  EXPECT_THAT(message_of<UserError>([&] { read_file(folder_.path()); }), HasSubstr("folder"));
  EXPECT_THAT(message_of<UserError>([&] { MappedFile{folder_.path()}; }), HasSubstr("folder"));
}

TEST_F(Files, OnlyRegularFilesAreMapped) {
  EXPECT_THAT(message_of<UserError>([] { MappedFile{"/dev/null"}; }), HasSubstr("/dev/null"));
  const auto pipe = in_folder("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(message_of<UserError>([&] { MappedFile{pipe}; }), HasSubstr(pipe.string()));  // and does not wait
}

TEST_F(Files, FilesWithoutPermissionAreRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read and write everything";
  const auto secret = make_file("secret", "x");
  std::filesystem::permissions(secret, std::filesystem::perms::none);
  EXPECT_THAT(message_of<UserError>([&] { read_file(secret); }), HasSubstr("Permission denied"));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_read);
  EXPECT_THAT(message_of<EnvironmentError>([&] { AtomicFile{in_folder("new")}; }), HasSubstr("Permission denied"));
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
}

TEST_F(Files, AnAtomicFileAppearsWithCommitAndNotBefore) {
  const std::string content = large_content();
  AtomicFile file(in_folder("f"));
  file.write(std::string_view(content).substr(0, 5));
  file.write(std::string_view(content).substr(5));
  EXPECT_EQ(file.bytes_written(), content.size());
  EXPECT_FALSE(std::filesystem::exists(in_folder("f")));
  file.commit();
  EXPECT_TRUE(read_file(in_folder("f")) == content);
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(Files, AFileThatIsReplacedKeepsItsPermissions) {
  using std::filesystem::perms;
  const auto mode_of = [&](const char* name) { return std::filesystem::status(in_folder(name)).permissions(); };
  for (const perms mode : {perms::owner_read | perms::owner_write, perms(0664), perms(0755)}) {
    make_file("f", "old");
    std::filesystem::permissions(in_folder("f"), mode);
    make_file("f.partial", "of an earlier command");
    AtomicFile file(in_folder("f"));
    EXPECT_EQ(mode_of("f.partial"), mode) << "before anything is written";
    file.write("new");
    file.commit();
    EXPECT_EQ(mode_of("f"), mode);
    EXPECT_EQ(read_file(in_folder("f")), "new");
  }
}

TEST_F(Files, WithoutCommitTheOldFileStaysAndNothingElse) {
  make_file("f", "old");
  { AtomicFile(in_folder("f")).write(large_content()); }
  EXPECT_EQ(read_file(in_folder("f")), "old");
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(Files, AWriterWaitsForTheOneBefore) {
  AtomicFile first(in_folder("f"));
  first.write("first");
  std::atomic<bool> ends{false}, is_early{false};
  std::jthread other([&] {
    AtomicFile second(in_folder("f"));
    is_early = !ends;
    second.write("second");
    second.commit();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // in which the other tries
  ends = true;
  first.commit();
  other.join();
  EXPECT_FALSE(is_early);
  EXPECT_EQ(read_file(in_folder("f")), "second");
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(Files, ValuesAreWrittenLittleEndian) {
  AtomicFile file(in_folder("f"));
  file.write_values(std::span<const std::uint32_t>(std::array<std::uint32_t, 2>{0x04030201, 0x08070605}));
  file.commit();
  EXPECT_EQ(read_file(in_folder("f")), "\1\2\3\4\5\6\7\10");
}

TEST_F(Files, AFolderInTheWayOfCommitIsAnErrorThatLeavesNothing) {
  make_folders(in_folder("f") / "inside");
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(in_folder("f"), "x"); }),
              HasSubstr("directory"));
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(Files, AMissingFolderIsAnErrorThatNamesItAndTheFile) {
  const auto path = in_folder("no") / "f";
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(path, "x"); }),
              AllOf(HasSubstr("'" + path.string() + "'"),
                    HasSubstr("there is no folder '" + in_folder("no").string() + "'; make it first"),
                    Not(HasSubstr("space"))));
}

// The limit on a file's size stands in for a full disk: write() stores a part, then fails.
TEST_F(Files, AFullDiskLeavesTheOldFileAndNothingElse) {
  make_file("f", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message =
      message_of<EnvironmentError>([&] { write_file_atomically(in_folder("f"), std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THAT(message, AllOf(HasSubstr(in_folder("f").string()), HasSubstr("File too large"), HasSubstr("ulimit -f")));
  EXPECT_EQ(read_file(in_folder("f")), "old");
  EXPECT_EQ(folder_.entries(), 1U);
}

// Every write to /dev/full fails with the error of a full disk.
TEST_F(Files, AFullDeviceIsReportedAsSuch) {
  std::filesystem::create_symlink("/dev/full", in_folder("f.partial"));
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(in_folder("f"), "x"); }),
              HasSubstr("No space left on device"));
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(Files, FoldersAreMadeWithTheirParentsAndAFileInTheWayIsAnError) {
  make_folders(in_folder("a") / "b" / "c");
  make_folders(in_folder("a") / "b" / "c");
  sync_folder(in_folder("a"));
  EXPECT_TRUE(std::filesystem::is_directory(in_folder("a") / "b" / "c"));
  const auto blocked = make_file("file", "") / "below";
  for (const auto& path : {blocked, blocked.parent_path(), std::filesystem::path("/dev/null")}) {
    EXPECT_THAT(message_of<UserError>([&] { make_folders(path); }),
                AllOf(HasSubstr("'" + path.string() + "': there is a file"), HasSubstr("name another folder")));
  }
  EXPECT_THAT(message_of<UserError>([] { make_folders(""); }), HasSubstr("is empty"));
}

TEST_F(Files, LinksThatLeadToOneAnotherAreNotReplaced) {
  std::filesystem::create_symlink(in_folder("b"), in_folder("a"));
  std::filesystem::create_symlink(in_folder("a"), in_folder("b"));
  for (const char* const name : {"a", "b"}) {
    EXPECT_THAT(message_of<UserError>([&] { write_file_atomically(in_folder(name), "x"); }),
                HasSubstr("its symbolic links lead to one another"));
    EXPECT_THAT(message_of<UserError>([&] { make_folders(in_folder(name) / "below"); }), HasSubstr("symbolic links"));
    EXPECT_TRUE(std::filesystem::is_symlink(in_folder(name)));
  }
}

TEST_F(Files, EveryErrorOfAFolderSaysWhatToDo) {
  EXPECT_THAT(message_of<EnvironmentError>([&] { make_folders(in_folder(std::string(300, 'x').c_str())); }),
              HasSubstr("or choose another place"));
  EXPECT_EQ(remedy_of_write_error(EROFS), "make its disk writable");
  for (const int error : {EMFILE, EFBIG}) EXPECT_THAT(remedy_of_write_error(error), HasSubstr("ulimit"));
}

TEST_F(Files, AResultThatCouldNotBeWrittenIsReportedBeforeTheWork) {
  std::filesystem::create_directory(in_folder("folder"));
  for (const char* const name : {"folder", "none/x.json", "folder/none/x.json"}) {
    EXPECT_THROW(require_writable(in_folder(name)), UserError) << name;
  }
  write_file_atomically(in_folder("old.json"), "old");
  for (const char* const name : {"new.json", "old.json"}) require_writable(in_folder(name));
  require_writable("-");
  require_writable("/dev/null");
  EXPECT_EQ(read_file(in_folder("old.json")), "old");
  EXPECT_FALSE(std::filesystem::exists(in_folder("new.json")));
}

TEST_F(Files, ThePartialFileOfAnEarlierCommandOutlivesTheCheckOfItsPlace) {
  make_file("corpus.jsonl.partial", "half");
  require_writable(in_folder("corpus.jsonl"));
  EXPECT_EQ(read_file(in_folder("corpus.jsonl.partial")), "half");
}

TEST_F(Files, APictureReplacesNothingButAnEarlierOne) {
  for (const auto& [there, is_replaced] :
       {std::pair("<svg width", true), std::pair("", true), std::pair("<sv", false), std::pair("precious", false)}) {
    write_file_atomically(in_folder("p"), there);
    const auto ask = [&] { require_replaceable(in_folder("p"), "picture of teratron", "<svg"); };
    if (is_replaced) {
      ask();
    } else {
      EXPECT_THAT(message_of<UserError>(ask), HasSubstr("is no picture of teratron"));
    }
    EXPECT_EQ(read_file(in_folder("p")), there);
  }
}

TEST_F(Files, AnOpenFileKeepsItsNameUntilItIsReplaced) {
  const std::filesystem::path file = make_file("file", "x"), link = in_folder("link");
  std::filesystem::create_symlink(file, link);
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  for (const LastLink rule : {LastLink::kFollowed, LastLink::kRefused}) {
    EXPECT_TRUE(names_open_file(file, descriptor, rule));
    EXPECT_EQ(names_open_file(link, descriptor, rule), rule == LastLink::kFollowed);
    EXPECT_FALSE(names_open_file(in_folder("missing"), descriptor, rule));
  }
  write_file_atomically(file, "another");
  EXPECT_FALSE(names_open_file(file, descriptor, LastLink::kRefused));
  ::close(descriptor);
}

}  // namespace
}  // namespace teratron::testing

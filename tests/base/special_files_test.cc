// Devices, pipes and links: written to instead of replaced, and read or refused, but never waited for in silence.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SpecialFiles : public ::testing::Test {
 protected:
  fs::path make_pipe() const {
    const fs::path pipe = folder_ / "pipe";
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    return pipe;
  }
  TemporaryFolder folder_;
};

std::string random_text(std::size_t length, std::uint64_t seed) {
  RandomSequence random({.seed = seed});
  std::string text(length, '\0');
  for (char& byte : text) byte = static_cast<char>(random.next_u32());
  return text;
}

TEST_F(SpecialFiles, ADeviceIsWrittenToAndStaysADevice) {
  const fs::path device = folder_ / "null";
  if (::mknod(device.c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) GTEST_SKIP() << "making a device needs root";
  write_file_atomically(device, random_text(3 << 20, 1));
  EXPECT_TRUE(fs::is_character_file(device));
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(SpecialFiles, ADevicesFailureIsReported) {
  const fs::path device = folder_ / "full";  // not the system's own, which a failure would replace
  if (::mknod(device.c_str(), S_IFCHR | 0666, ::makedev(1, 7)) != 0) GTEST_SKIP() << "making a device needs root";
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(device, "x"); }),
              AllOf(HasSubstr(device.string()), HasSubstr("No space left")));
  EXPECT_TRUE(fs::is_character_file(device));
}

TEST_F(SpecialFiles, APipeGetsEveryByteAndStays) {
  const fs::path pipe = make_pipe();
  const std::string text = random_text(3 << 20, 2);  // more than a pipe holds
  auto reader = std::async(std::launch::async, [&] { return read_file(pipe); });
  while (true) {  // the reader may not have come yet
    try {
      write_file_atomically(pipe, text);
      break;
    } catch (const EnvironmentError&) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
  EXPECT_TRUE(reader.get() == text);
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(SpecialFiles, APipeThatNobodyReadsIsAnErrorAtOnce) {
  const fs::path pipe = make_pipe();
  EXPECT_THAT(message_of<EnvironmentError>([&] { write_file_atomically(pipe, "x"); }),
              AllOf(HasSubstr(pipe.string()), HasSubstr("nobody reads")));
}

TEST_F(SpecialFiles, ALinkStaysAndWhatItLeadsToIsReplacedAtomically) {
  fs::create_directory(folder_ / "elsewhere");
  std::ofstream(folder_ / "elsewhere" / "file") << "old";
  fs::create_symlink("elsewhere/file", folder_ / "relative");
  fs::create_symlink(folder_ / "relative", folder_ / "chain");
  fs::create_symlink("elsewhere/new", folder_ / "dangling");
  { AtomicFile(folder_ / "chain").write("half"); }
  EXPECT_EQ(read_file(folder_ / "elsewhere" / "file"), "old");
  write_file_atomically(folder_ / "chain", "new");
  write_file_atomically(folder_ / "dangling", "created");
  EXPECT_EQ(read_file(folder_ / "elsewhere" / "file"), "new");
  EXPECT_EQ(read_file(folder_ / "elsewhere" / "new"), "created");
  for (const char* link : {"relative", "chain", "dangling"}) EXPECT_TRUE(fs::is_symlink(folder_ / link)) << link;
  EXPECT_EQ(folder_.entries(), 4U);
}

// As --json /dev/stdout with standard output in a file: what was printed before stays, and later prints are not lost.
TEST_F(SpecialFiles, AnOpenFileIsAppendedToByAnyOfItsNames) {
  for (const int flags : {O_APPEND, 0}) {
    for (const char* place : {"/proc/self/fd", "/dev/fd", "link"}) {
      SCOPED_TRACE(fmt::format("{} {}", place, flags));
      const fs::path file = folder_ / "f", link = folder_ / "link";
      const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | flags, 0600);
      const std::string number = std::to_string(descriptor);
      fs::remove(link);
      fs::create_symlink("/dev/fd/" + number, link);
      ASSERT_EQ(::write(descriptor, "before ", 7), 7);
      write_file_atomically(place == std::string("link") ? link : fs::path(place) / number, "json ");
      ASSERT_EQ(::write(descriptor, "after", 5), 5);
      ::close(descriptor);
      EXPECT_EQ(read_file(file), "before json after");
    }
  }
}

// As /dev/stdout is in a unit of systemd. A socket cannot be opened by a name.
TEST_F(SpecialFiles, ASocketIsWrittenAndReadByAnyOfItsNames) {
  for (const char* place : {"/proc/self/fd", "/dev/fd", "link"}) {
    SCOPED_TRACE(place);
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const fs::path link = folder_ / "link";
    fs::remove(link);
    const auto name_of = [&](int descriptor) {
      const fs::path name = fmt::format("/dev/fd/{}", descriptor);
      if (place != std::string("link")) return fs::path(place) / name.filename();
      fs::create_symlink(name, link);
      return link;
    };
    write_file_atomically(name_of(ends[0]), "json");
    ::close(ends[0]);
    fs::remove(link);
    const fs::path name = name_of(ends[1]);
    EXPECT_TRUE(is_stream(name));
    EXPECT_EQ(read_file(name), "json");
    ::close(ends[1]);
  }
}

TEST_F(SpecialFiles, AFullPipeOfAnotherProgramThatDoesNotWaitIsWaitedFor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
  const std::string text = random_text(3 << 20, 5);
  auto reader = std::async(std::launch::async, [&] { return read_file(fmt::format("/dev/fd/{}", ends[0])); });
  EXPECT_NO_THROW(write_file_atomically(fmt::format("/dev/fd/{}", ends[1]), text));
  ::close(ends[1]);
  EXPECT_TRUE(reader.get() == text);
  ::close(ends[0]);
}

TEST_F(SpecialFiles, APipeIsReadToItsEndHoweverSlowItsWriter) {
  const fs::path pipe = make_pipe();
  const std::string text = random_text(200'000, 3);
  std::thread writer([&] {
    std::this_thread::sleep_for(milliseconds(60));  // the reader comes first
    std::ofstream stream(pipe, std::ios::binary);
    std::this_thread::sleep_for(milliseconds(60));  // a writer that says nothing yet is no end
    stream << text.substr(0, 1000) << std::flush;
    std::this_thread::sleep_for(milliseconds(60));
    stream << text.substr(1000);
  });
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(read_file(pipe, {.notice = milliseconds(25)}) == text);
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      AllOf(HasSubstr("waiting for somebody to write to '" + pipe.string()), HasSubstr("waiting for more of '")));
  writer.join();
}

TEST_F(SpecialFiles, APipeThatNobodyWritesIsRefused) {
  const fs::path pipe = make_pipe();
  EXPECT_THAT(message_of<UserError>([&] { read_file(pipe, {.writer = milliseconds(50)}); }),
              AllOf(HasSubstr(pipe.string()), HasSubstr("nobody writes")));
}

TEST_F(SpecialFiles, AWriterThatWritesNothingIsAnEmptyFile) {
  const fs::path pipe = make_pipe();
  auto writer = std::async(std::launch::async, [&] { std::ofstream stream(pipe); });
  EXPECT_EQ(read_file(pipe), "");
}

TEST_F(SpecialFiles, AnonymousPipesEndWhereTheirWriterHasLeft) {
  for (const std::string& text : {std::string(), std::string("text")}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    EXPECT_EQ(read_file(fmt::format("/dev/fd/{}", ends[0])), text);
    ::close(ends[0]);
  }
}

TEST_F(SpecialFiles, DevicesAreReadOrRefused) {
  EXPECT_EQ(read_file("/dev/null"), "");
  EXPECT_THAT(message_of<UserError>([] { read_file("/dev/zero"); }),
              AllOf(HasSubstr("/dev/zero"), HasSubstr("no end")));
  const fs::path disk = folder_ / "disk";
  if (::mknod(disk.c_str(), S_IFBLK | 0600, ::makedev(1, 0)) != 0) GTEST_SKIP() << "making a device needs root";
  try {
    read_file(disk);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const UserError& error) {  // there is such a disk, or a name without one
    EXPECT_THAT(error.what(), HasSubstr(disk.string()));
  }
}

}  // namespace
}  // namespace teratron::testing

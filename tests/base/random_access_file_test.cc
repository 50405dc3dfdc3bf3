// Reads of a file that others change: errors that name it, never a signal, and never what it did not hold.
#include "base/files/random_access_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ChangingFile : public ::testing::Test {
 protected:
  void SetUp() override { write_file_atomically(path_, std::string(100000, 'a')); }
  std::string text_at(const RandomAccessFile& file, std::uint64_t offset, std::size_t bytes) const {
    std::vector<std::byte> read(bytes);
    file.read(offset, read);
    file.require_unchanged([&] { return fault_; });
    return {reinterpret_cast<const char*>(read.data()), bytes};
  }
  std::string error_of(const RandomAccessFile& file, std::uint64_t offset, std::size_t bytes) const {
    try {
      text_at(file, offset, bytes);
      return "";
    } catch (const EnvironmentError& error) {
      return error.what();
    }
  }
  std::string fault_ = "something has written to it";
  TemporaryFolder folder_;
  const fs::path path_ = folder_ / "file";
};

TEST_F(ChangingFile, IsReadAtAnyPlaceWhileNothingChangesIt) {
  const RandomAccessFile file(path_);
  EXPECT_EQ(file.size(), 100000U);
  EXPECT_EQ(text_at(file, 99990, 10), "aaaaaaaaaa");
  EXPECT_EQ(text_at(file, 100000, 0), "");
}

TEST_F(ChangingFile, WhateverChangesItIsReportedByName) {
  const std::vector<std::pair<std::string, std::function<void()>>> changes = {
      {"has 50000 bytes now, and had 100000", [&] { fs::resize_file(path_, 50000); }},
      {"has 100001 bytes now", [&] { fs::resize_file(path_, 100001); }},
      {"something has written to it",
       [&] { std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(70000) << "b"; }},
  };
  for (const auto& [expected, change] : changes) {
    write_file_atomically(path_, std::string(100000, 'a'));
    const RandomAccessFile file(path_);
    ::usleep(20000);  // the clock of files moves every few milliseconds
    change();
    EXPECT_THAT(error_of(file, 10, 10), AllOf(HasSubstr(path_.string()), HasSubstr(expected)));
  }
}

TEST_F(ChangingFile, ReportsThePlaceOfACut) {
  const RandomAccessFile file(path_);
  fs::resize_file(path_, 50000);
  EXPECT_THAT(error_of(file, 60000, 10), AllOf(HasSubstr("was cut short while it was read: it ends at byte 60000"),
                                               HasSubstr("and had 100000 bytes")));
  EXPECT_THAT(error_of(file, 49990, 20), HasSubstr("it ends at byte 50000"));
}

TEST_F(ChangingFile, OneThatIsReplacedOrRemovedIsReadAsItWas) {
  fault_.clear();  // of its content: its times change with its name
  const RandomAccessFile file(path_);
  write_file_atomically(path_, "another");
  EXPECT_EQ(text_at(file, 0, 3), "aaa");
  fs::remove(path_);
  EXPECT_EQ(text_at(file, 0, 3), "aaa");
}

TEST_F(ChangingFile, MoreFilesThanTheFirstLimitAllowsAreOpened) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  {
    std::vector<RandomAccessFile> files;
    for (int i = 0; i < 100; ++i) files.emplace_back(path_);
    EXPECT_EQ(text_at(files.back(), 0, 3), "aaa");
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(ChangingFile, RefusesOtherThanRegularFiles) {
  EXPECT_THROW(RandomAccessFile(folder_ / "none"), UserError);
  EXPECT_THROW(RandomAccessFile(fs::path("/dev/null")), UserError);
  EXPECT_THROW(RandomAccessFile(folder_ / "."), UserError);
}

TEST_F(ChangingFile, OneThatIsTouchedOrRenamedIsComparedOnceForEachChange) {
  const RandomAccessFile file(path_);
  int compared = 0;
  const auto look = [&] {
    file.require_unchanged([&] {
      ++compared;
      return std::string();
    });
  };
  int changes = 0;
  const std::vector<std::function<void()>> all = {[&] { fs::last_write_time(path_, fs::file_time_type::clock::now()); },
                                                  [&] { fs::permissions(path_, fs::perms::owner_read); },
                                                  [&] { fs::rename(path_, folder_ / "other"); }};
  for (const auto& change : all) {
    ::usleep(20000);
    change();
    look();
    look();
    EXPECT_EQ(compared, ++changes);
  }
}

TEST_F(ChangingFile, AWriterThatSetsTheTimeBackIsSeen) {
  const RandomAccessFile file(path_);
  const auto time = fs::last_write_time(path_);
  ::usleep(20000);
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(70000) << "b";
  fs::last_write_time(path_, time);
  EXPECT_THAT(error_of(file, 10, 10), HasSubstr("something has written to it"));
}

}  // namespace
}  // namespace teratron::testing

// A disk that becomes full while a stream writes: one error that names the file, nothing under the output's name, and
// the same bytes once there is room.
#include <gmock/gmock.h>
#include <sys/mount.h>

#include "base/error.h"
#include "base/philox.h"
#include "corpus/clean/clean_stage.h"
#include "corpus/dedup/dedup_stage.h"
#include "corpus/stage_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    // The disk lies in the folder of the inputs, and is as large as a test says.
    fs::create_directory(disk());
    is_mounted_ = ::mount("tmpfs", disk().c_str(), "tmpfs", 0, "size=4k") == 0;
    if (!is_mounted_) GTEST_SKIP() << "mounting a small disk needs root";
  }
  void TearDown() override {
    if (is_mounted_) ::umount(disk().c_str());
  }
  fs::path disk() const { return folder_ / "disk"; }
  void resize(std::int64_t kibibytes) const {
    ASSERT_EQ(::mount("tmpfs", disk().c_str(), "tmpfs", MS_REMOUNT, fmt::format("size={}k", kibibytes).c_str()), 0);
  }
  // Documents of `length` letters; every one of them is `same` where that is wanted.
  void write_documents(int documents, std::uint64_t length, bool same) {
    std::vector<std::string> texts;
    for (int i = 0; i < documents; ++i) {
      std::string text;
      while (text.size() < length) text += same ? "same words " : std::to_string(random_.below(1000)) + " ";
      texts.push_back(text);
    }
    write_file_atomically(folder_ / "in.jsonl", as_json_lines(texts));
  }
  StreamOptions options(const std::string& out) const {
    return {.files = {folder_ / "in.jsonl"}, .out = disk() / out, .batch_bytes = 5000, .journal_seconds = 0};
  }
  std::vector<std::unique_ptr<Stage>> clean() const { return stages_of(make_clean_stage({.min_tokens = 0})); }
  std::vector<std::unique_ptr<Stage>> dedup() const { return stages_of(make_dedup_stage({.folder = disk()})); }
  // The error of a run on a disk of this size; none where there is room.
  std::string error_of(const std::vector<std::unique_ptr<Stage>>& stages, const StreamOptions& options) const {
    try {
      run_stages(stages, options);
    } catch (const EnvironmentError& error) {
      EXPECT_FALSE(fs::exists(options.out));
      EXPECT_THAT(error.what(), AllOf(HasSubstr("No space left on device"), HasSubstr(disk().string())));
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder_;
  RandomSequence random_{RandomStream{.seed = 71}};
  bool is_mounted_ = false;
};

TEST_F(FullDisk, LeavesTheWholeOutputOrNoneAtAnySize) {
  write_documents(300, 200, false);
  for (const bool surveys : {false, true}) {
    const auto stages = [&] { return surveys ? dedup() : clean(); };
    resize(1'000'000);
    run_stages(stages(), options("out.jsonl"));
    const std::string expected = read_file(disk() / "out.jsonl");
    int failures = 0;
    for (std::int64_t kibibytes = 4; kibibytes < 110; kibibytes += 8) {
      fs::remove(disk() / "out.jsonl");
      resize(kibibytes);
      if (!error_of(stages(), options("out.jsonl")).empty()) ++failures;
      resize(1'000'000);
      run_stages(stages(), options("out.jsonl"));
      EXPECT_EQ(read_file(disk() / "out.jsonl"), expected);
      EXPECT_EQ(std::distance(fs::directory_iterator(disk()), {}), 1);
    }
    EXPECT_GT(failures, 5);
  }
}

TEST_F(FullDisk, TheErrorNamesWhatCannotBeWritten) {
  write_documents(300, 500, false);
  resize(64);
  StreamOptions without_points = options("out.jsonl");
  without_points.journal_seconds = 1000;
  EXPECT_THAT(error_of(clean(), without_points), HasSubstr("out.jsonl'"));
  EXPECT_THAT(error_of(clean(), options("out.jsonl.zst")), HasSubstr("out.jsonl.zst.journal'"));  // with lines in it
  EXPECT_THAT(error_of(dedup(), without_points), HasSubstr("temporary file"));                    // the spool
  resize(600);
  write_documents(6000, 60, true);  // of which the spool writes nothing for a while, but the index does
  EXPECT_THAT(error_of(dedup(), without_points), HasSubstr("temporary file"));
  StreamOptions dropped = options("out.jsonl");
  dropped.dropped = disk() / "dropped.jsonl";
  dropped.out = folder_ / "out.jsonl";  // there is room
  dropped.journal_seconds = 1000;
  resize(64);
  write_file_atomically(
      folder_ / "in.jsonl", std::string(40'000, '\n') + [] {
        std::string lines;
        for (int i = 0; i < 3000; ++i) lines += "not JSON\n";
        return lines;
      }());
  dropped.max_bad_share = 1;
  EXPECT_THAT(error_of(clean(), dropped), HasSubstr("dropped.jsonl'"));
  // The files from which the run resumes.
  EXPECT_EQ(std::distance(fs::directory_iterator(disk()), {}), 2);
  EXPECT_TRUE(fs::exists(disk() / "out.jsonl.zst.journal"));
}

}  // namespace
}  // namespace teratron::testing

// A log without space ends nothing, is reported once, and is complete when there is space again.
#include "telemetry/dispensable_log.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "base/files/file.h"
#include "base/temporary_folder.h"
#include "telemetry/metrics_log.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Limits files to so many bytes while it exists, like a full disk: the kernel reports both in the same way.
class LimitedFiles {
 public:
  explicit LimitedFiles(rlim_t bytes) : before_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~LimitedFiles() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, before_);
  }

 private:
  rlimit old_{};
  void (*before_)(int);
};

class DispensableLogs : public ::testing::Test {
 protected:
  DispensableLog<AppendedFile> make_log() {
    return {[this] { return std::make_unique<AppendedFile>(file_); },
            [this](const std::string& text) { reports_.push_back(text); }};
  }
  const TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "log";
  std::vector<std::string> reports_;
};

TEST_F(DispensableLogs, WriteWaitingLinesWholeOnceThereIsRoom) {
  std::string expected;
  auto log = make_log();
  const auto write = [&](int line) {
    const std::string text = fmt::format("line {} of the log\n", line);
    expected += text;
    log.write([&](AppendedFile& file) { file.append(text); });
  };
  for (int line = 0; line < 10; ++line) write(line);
  for (const rlim_t room : {5, 1, 40}) {
    const std::string before = read_file(file_);
    const LimitedFiles limit(before.size() + room);
    for (int line = 0; line < 20; ++line) write(line);
    const std::string content = read_file(file_);
    EXPECT_TRUE(content.ends_with('\n'));
    EXPECT_TRUE(expected.starts_with(content));
  }
  write(1000);
  EXPECT_EQ(read_file(file_), expected);
  EXPECT_THAT(reports_, ElementsAre(AllOf(HasSubstr(file_.string()), HasSubstr("the run goes on"))));
}

TEST_F(DispensableLogs, OneThatFindsNoRoomAtFirstBeginsLater) {
  bool has_room = false;
  DispensableLog<AppendedFile> log(
      [&] {
        if (!has_room) throw NoSpaceError("no room");
        return std::make_unique<AppendedFile>(file_);
      },
      [this](const std::string& text) { reports_.push_back(text); });
  has_room = true;
  log.write([](AppendedFile& file) { file.append("a line\n"); });
  EXPECT_EQ(read_file(file_), "a line\n");
  EXPECT_EQ(reports_.size(), 1U);
}

TEST_F(DispensableLogs, RefuseAWrongPlaceAtOnce) {
  EXPECT_THROW(DispensableLog<AppendedFile>([&] { return std::make_unique<AppendedFile>(folder_ / "no/log"); },
                                            [](const std::string&) {}),
               EnvironmentError);
  EXPECT_THROW(DispensableLog<MetricsLog>(
                   [&]() -> std::unique_ptr<MetricsLog> { throw UserError("the file holds something else"); },
                   [](const std::string&) {}),
               UserError);
}

TEST_F(DispensableLogs, ADeviceThatIsFullEndsNothing) {
  DispensableLog<AppendedFile> log([] { return std::make_unique<AppendedFile>("/dev/full"); },
                                   [this](const std::string& text) { reports_.push_back(text); });
  EXPECT_THAT(reports_, IsEmpty());
  for (int i = 0; i < 3; ++i) log.write([](AppendedFile& file) { file.append("a line\n"); });
  EXPECT_EQ(reports_.size(), 1U);
}

}  // namespace
}  // namespace teratron::testing

// Lines of JSON to the files they are chosen for, byte for byte.
#include "corpus/stream/line_parts.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/compressed.h"
#include "base/error.h"
#include "base/files/decompression.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "corpus/stage_fixture.h"

namespace teratron::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(LineParts, EachLineGoesToItsFileAsItIs) {
  RandomSequence random(RandomStream{.seed = 41});
  for (int trial = 0; trial < 20; ++trial) {
    const TemporaryFolder folder;
    std::vector<fs::path> files;
    std::vector<std::string> expected(2);
    std::vector<std::uint8_t> parts;
    for (const std::string name : {"a.jsonl", "b.jsonl.gz", "c.jsonl.zst"}) {
      std::string lines;
      for (std::uint64_t left = random.below(40); left > 0; --left) {
        if (random.below(5) == 0) lines += " \n";
        const std::string line = "{ \"t\" :" + std::string(random.below(30), 'x') + (random.below(2) == 0 ? "\r" : "");
        lines += line + "\n";
        parts.push_back(static_cast<std::uint8_t>(random.below(3)));
        if (parts.back() < 2) expected[parts.back()] += line + "\n";
      }
      files.push_back(folder / name);
      write_file_atomically(files.back(), name == "a.jsonl" ? lines : name == "b.jsonl.gz" ? gzip(lines) : zstd(lines));
    }
    EXPECT_EQ(count_lines(files), std::ssize(parts));
    const std::vector<fs::path> outs = {folder / "x.jsonl", folder / (trial % 2 == 0 ? "y.jsonl.zst" : "y.jsonl.ZST")};
    const std::vector<std::int64_t> written = copy_lines(files, outs, parts).lines;
    EXPECT_EQ(read_file(outs[0]), expected[0]);
    EXPECT_EQ(read_decompressed(outs[1]), expected[1]);
    EXPECT_THAT(read_file(outs[1]), StartsWith("\x28\xB5\x2F\xFD")) << "zstd's first bytes";
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(written[i], std::ranges::count(expected[i], '\n'));
  }
}

TEST(LineParts, RefusesWhatIsNotReadTwiceOrWouldBeWrittenOver) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.jsonl", "{}\n{}\n");
  write_file_atomically(folder / "b.txt", "text");
  const auto refused = [&](const std::vector<fs::path>& files, const std::vector<fs::path>& outs,
                           const std::vector<std::uint8_t>& parts) {
    return message_of<UserError>([&] { copy_lines(files, outs, parts); });
  };
  EXPECT_THROW(count_lines(std::vector<fs::path>{"-"}), UserError);
  EXPECT_THROW(count_lines(std::vector<fs::path>{folder / "b.txt"}), UserError);
  EXPECT_THAT(refused({folder / "a.jsonl"}, {folder / "a.jsonl"}, {0, 0}), HasSubstr("another name"));
  EXPECT_THAT(refused({folder / "a.jsonl"}, {folder / "c.jsonl", folder / "c.jsonl"}, {0, 1}),
              HasSubstr("another name"));
  EXPECT_THAT(refused({folder / "a.jsonl"}, {folder / "c.jsonl.GZ"}, {0, 0}), HasSubstr("gzip is read, not written"));
  EXPECT_THAT(refused({folder / "a.jsonl"}, {folder / "c.jsonl"}, {0}), HasSubstr("changed"));
  EXPECT_THAT(refused({folder / "a.jsonl"}, {folder / "c.jsonl"}, {0, 0, 0}), HasSubstr("changed"));
  EXPECT_EQ(folder.entries(), 2);
}

TEST(LineParts, AdviseNoFlagThatTheirCommandsLack) {
  const TemporaryFolder folder;
  const std::vector<fs::path> files = {folder / "page"};
  for (const char* text : {"<!DOCTYPE html>\n<html></html>\n", "{\"text\": \"a\",\n"}) {
    write_file_atomically(files[0], text);
    EXPECT_THAT(message_of<UserError>([&] { count_lines(files); }), AllOf(HasSubstr("page"), Not(HasSubstr("--"))));
  }
}

TEST(LineParts, WarnsOfLinesThatOtherCommandsDoNotRead) {
  const TemporaryFolder folder;
  const std::vector<std::string> bad = {"{\"text\": \"cut", "{\"text\": NaN}", "plain", "{\"text\": \"caf\xE9\"}",
                                        "[1]"};
  std::string lines = "{\"text\": \"a\"}\n{\"meta\": \"\\ud800\", \"n\": 1e400}\n";
  for (const std::string& line : bad) lines += line + "\n";
  const std::vector<fs::path> files = {folder / "a.jsonl"}, outs = {folder / "x.jsonl"};
  write_file_atomically(files[0], lines);
  const CopiedLines all = copy_lines(files, outs, std::vector<std::uint8_t>(bad.size() + 2, 0));
  EXPECT_EQ(read_file(outs[0]), lines);
  EXPECT_EQ(all.faulty, std::ssize(bad));
  EXPECT_THAT(all.first_fault, HasSubstr("a.jsonl:3: "));
  EXPECT_EQ(copy_lines(files, outs, std::vector<std::uint8_t>{0, 0, 1, 1, 1, 1, 1}).faulty, 0);
}

}  // namespace
}  // namespace teratron::testing

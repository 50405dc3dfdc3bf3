// Compressed files read back in pieces of any size; damage is an error, never text.
#include "base/files/decompression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/compressed.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/message_of.h"
#include "base/philox.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

struct Compression {
  const char* name;
  std::string (*compress)(std::string_view text, int level);
};
const std::vector<Compression> kCompressions = {{"gzip", gzip}, {"zstd", zstd}};

// Text that shrinks: runs of few letters.
std::string compressible(RandomSequence& random, std::size_t length) {
  std::string text;
  while (text.size() < length) text.append(1 + random.below(9), static_cast<char>('a' + random.below(6)));
  text.resize(length);
  return text;
}

class Decompression : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) const {
    write_file_atomically(folder_ / "file", content);
    return folder_ / "file";
  }
  // Content read in pieces of random sizes, or the error.
  std::string read_in_pieces(const std::string& content, RandomSequence& random) const {
    DecompressingReader reader(file(content));
    std::string text;
    while (true) {
      std::string piece(1 + random.below(100'000), '\0');
      const std::size_t got = reader.read(piece);
      if (got == 0) break;
      text += piece.substr(0, got);
    }
    EXPECT_EQ(reader.bytes_taken(), std::ssize(content));
    EXPECT_EQ(reader.read(std::span(text.data(), text.empty() ? 0 : 1)), 0U);  // the end stays the end
    return text;
  }
  std::string error_of(const std::string& content) const {
    return message_of<UserError>([&] { read_decompressed(file(content)); });
  }
  TemporaryFolder folder_;
};

TEST_F(Decompression, ShowsWhatComesNextWithoutTakingIt) {
  const std::string text = "0123456789";
  for (const std::string& content : {text, gzip(text), zstd(text)}) {
    DecompressingReader reader(file(content));
    EXPECT_EQ(reader.peek(3), "012");
    std::string taken(2, '\0');
    EXPECT_EQ(reader.read(taken), 2U);
    EXPECT_EQ(taken, "01");
    EXPECT_EQ(reader.peek(100), "23456789");
    EXPECT_EQ(reader.peek(1), "2");
    std::string rest;
    for (std::string piece(3, '\0'); const std::size_t got = reader.read(piece);) rest += piece.substr(0, got);
    EXPECT_EQ(rest, "23456789");
    EXPECT_EQ(reader.peek(5), "");
  }
}

TEST_F(Decompression, RefusesFewBytesThatStandForVeryMany) {
  const std::string text(100'000, 'a');
  for (const std::string& content : {gzip(text), zstd(text)}) {
    EXPECT_THROW(read_decompressed(file(content), 99'999), UserError);
    EXPECT_EQ(read_decompressed(file(content), 100'000), text);
  }
  EXPECT_EQ(read_decompressed(file(text), 10), text);  // what lies there uncompressed is no surprise
}

TEST_F(Decompression, GivesBackWhatWasCompressedInAnyNumberOfPieces) {
  RandomSequence random({.seed = 1});
  for (int trial = 0; trial < 40; ++trial) {
    for (const Compression& format : kCompressions) {
      std::string text, content;
      for (std::uint64_t parts = 1 + random.below(5); parts > 0; --parts) {
        const std::string part = compressible(random, random.below(4) == 0 ? 0 : random.below(1 << 18));
        text += part;
        content += format.compress(part, 1 + static_cast<int>(random.below(6)));
      }
      const bool same = read_in_pieces(content, random) == text;
      EXPECT_TRUE(same) << format.name << ", trial " << trial;
    }
  }
}

TEST_F(Decompression, LeavesOtherBytesAsTheyAre) {
  RandomSequence random({.seed = 2});
  for (const std::string start : {"", "a", "\x1F", "\x1F\x8B", "\x28\xB5\x2F", "\x50\x2A\x4D", "text "}) {
    for (const std::size_t length : {0U, 1U, 700'000U}) {
      const std::string text = start + (length == 0 ? "" : "." + compressible(random, length));
      EXPECT_EQ(read_in_pieces(text, random), text);
      EXPECT_FALSE(DecompressingReader(file(text)).is_compressed());
    }
  }
}

TEST_F(Decompression, ZerosAfterGzipAndFramesToSkipAreNoText) {
  RandomSequence random({.seed = 3});
  EXPECT_EQ(read_in_pieces(gzip("text") + std::string(10'000, '\0'), random), "text");
  const std::string skippable("\x5A\x2A\x4D\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_EQ(read_in_pieces(skippable + zstd("text") + skippable, random), "text");
}

// Cut at any place but between members, it is an error and never a shorter text.
TEST_F(Decompression, ReportsInputThatIsCutShort) {
  RandomSequence random({.seed = 4});
  for (const Compression& format : kCompressions) {
    const std::string first = format.compress(compressible(random, 3000), 6);
    const std::string content = first + format.compress(compressible(random, 3000), 6);
    for (int trial = 0; trial < 100; ++trial) {
      const std::size_t length = 4 + random.below(content.size() - 4);
      if (length == first.size()) continue;
      EXPECT_THAT(error_of(content.substr(0, length)),
                  AllOf(HasSubstr("file' is cut short"), HasSubstr(format.name),
                        HasSubstr(fmt::format("break off after {} bytes", length))));
    }
  }
}

TEST_F(Decompression, AFlippedBitIsReportedWithItsPlace) {
  RandomSequence random({.seed = 5});
  for (const Compression& format : kCompressions) {
    const std::string text = compressible(random, 20'000), content = format.compress(text, 6);
    int reported = 0;
    for (int trial = 0; trial < 200; ++trial) {
      std::string damaged = content;
      damaged[10 + random.below(content.size() - 10)] ^= static_cast<char>(1 << random.below(8));
      const std::string error = error_of(damaged);
      if (error == kNoError) {  // bits that only fill gzip's last byte
        EXPECT_TRUE(read_decompressed(folder_ / "file") == text);
        continue;
      }
      EXPECT_THAT(error, AllOf(HasSubstr("file' is "), HasSubstr(format.name), HasSubstr("again")));
      reported += error.find(" is damaged: its ") != std::string::npos && error.find("at byte ") != std::string::npos;
    }
    EXPECT_GT(reported, 150) << format.name;  // a few look cut short instead
  }
  for (const Compression& format : kCompressions) {
    EXPECT_THAT(error_of(format.compress("text", 6) + "garbage"), HasSubstr("is damaged")) << format.name;
  }
}

// As `zstd --long=31` makes them: intact, but reading takes 2 GiB of memory.
TEST_F(Decompression, AWindowThatIsTooLargeIsNoDamage) {
  const auto frame = [](char window) {
    return std::string("\x28\xB5\x2F\xFD\0", 5) + window + std::string("\x21\0\0text", 7);  // one block, as it is
  };
  constexpr auto k128MiB = static_cast<char>(17 << 3), k2GiB = static_cast<char>(21 << 3);
  EXPECT_EQ(read_decompressed(file(frame(k128MiB))), "text");
  for (const std::string& before : {std::string(), zstd("before")}) {
    EXPECT_THAT(error_of(before + frame(k2GiB)),
                AllOf(HasSubstr("file' was compressed"), HasSubstr("more than 128 MiB"), HasSubstr("zstd -d --long=31"),
                      ::testing::Not(HasSubstr("damaged"))));
  }
}

TEST_F(Decompression, StandardInputIsReadAsAFileIs) {
  RandomSequence random({.seed = 6});
  const std::string text = compressible(random, 300'000);
  for (const std::string& content : {text, gzip(text), zstd(text)}) {
    const StandardInput input(file(content));
    EXPECT_TRUE(read_decompressed("-") == text);
  }
  {
    const StandardInput input(file(gzip(text).substr(0, 100)));
    EXPECT_THAT(message_of<UserError>([&] { read_decompressed("-"); }), HasSubstr("standard input is cut short"));
  }
  const StandardInput input(folder_.path());
  EXPECT_THROW(read_file("-"), UserError);
}

}  // namespace
}  // namespace teratron::testing

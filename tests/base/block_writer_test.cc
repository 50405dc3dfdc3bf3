// Files written through blocks hold what was appended, whatever the sizes and the number of blocks; a fault of the disk
// is reported as one.
#include "base/files/block_writer.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <array>
#include <barrier>
#include <csignal>
#include <list>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/philox.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

using ::testing::HasSubstr;

// Random bytes, again and again at places that are no multiple of a block's.
std::string random_bytes(std::size_t count, RandomSequence& random) {
  std::string part(99991, '\0');
  for (char& byte : part) byte = static_cast<char>(random.next_u32());
  std::string bytes;
  bytes.reserve(count + part.size());
  while (bytes.size() < count) bytes += part;
  bytes.resize(count);
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

void append_in_pieces(BlockFile& file, std::string_view content, RandomSequence& random) {
  while (!content.empty()) {
    const std::size_t count = std::min<std::size_t>(content.size(), 1 + random.below(3 << 20));
    file.append(bytes_of(content.substr(0, count)));
    content.remove_prefix(count);
  }
  file.end();
}

TEST(BlockWriter, FilesOfAnySizeHoldWhatWasAppended) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomSequence random({.seed = 3});
  constexpr std::size_t kBlock = BlockWriter::kBlockBytes;
  for (const std::size_t blocks : {std::size_t{0}, std::size_t{5}}) {
    BlockWriter writer(blocks);
    std::vector<std::string> contents;
    std::list<BlockFile> files;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, kBlock - 1, kBlock, kBlock + 4097,
                                   static_cast<std::size_t>(random.below(3 * kBlock))}) {
      contents.push_back(random_bytes(size, random));
      BlockFile& file = files.emplace_back(writer, folder / fmt::format("{}", contents.size()), size);
      append_in_pieces(file, contents.back(), random);
    }
    for (BlockFile& file : files) file.sync_and_close();
    for (std::size_t i = 0; i < contents.size(); ++i) {
      EXPECT_TRUE(read_file(folder / fmt::format("{}", i + 1)) == contents[i]) << contents[i].size() << " bytes";
    }
  }
}

TEST(DirectFile, HoldsMemoryOfAnySize) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomSequence random({.seed = 5});
  constexpr std::size_t kMost = (std::size_t{9} << 20) + 77;
  const HugePages memory(kMost, /*now=*/true);
  const std::string bytes = random_bytes(kMost, random);
  std::ranges::copy(bytes_of(bytes), memory.bytes().begin());
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, DirectFile::kSector, DirectFile::kSector + 1, kMost}) {
    write_directly(folder / "file", memory.bytes().first(size));
    EXPECT_TRUE(read_file(folder / "file") == bytes.substr(0, size)) << size << " bytes";
  }
}

// As a file system that takes O_DIRECT and refuses the writes: here they are refused since their memory is not aligned.
TEST(DirectFile, ThreadsWhoseDirectWritesAreRefusedAllGoThroughThePageCache) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  constexpr std::size_t kSector = DirectFile::kSector;
  const HugePages memory(2 * kSector, /*now=*/true);
  for (int trial = 0; trial < 100; ++trial) {
    DirectFile file(folder / "file", 2 * kSector);
    std::array<int, 2> errors{};
    std::barrier begin(2);
    const auto write = [&](std::size_t i) {
      begin.arrive_and_wait();
      errors[i] = file.write_at(memory.bytes().subspan(1, kSector), i * kSector);
    };
    std::thread other(write, std::size_t{1});
    write(0);
    other.join();
    ASSERT_THAT(errors, ::testing::Each(0)) << trial;
  }
}

TEST(BlockWriter, AFileThatIsForgottenGivesItsBlocksBack) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  RandomSequence random({.seed = 4});
  BlockWriter writer(2);
  const std::string content = random_bytes(3 * BlockWriter::kBlockBytes + 5, random);
  for (int round = 0; round < 4; ++round) {
    BlockFile file(writer, folder / "forgotten", content.size());
    file.append(bytes_of(content));  // the last block is begun
  }
  BlockFile file(writer, folder / "kept", content.size());
  append_in_pieces(file, content, random);
  file.sync_and_close();
  EXPECT_TRUE(read_file(folder / "kept") == content);
}

TEST(BlockWriter, AFileThatMayNotGrowIsAnEnvironmentErrorThatNamesIt) {
  const TemporaryFolder folder(TemporaryFolder::kDisk);
  void (*const handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{BlockWriter::kBlockBytes + 100, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::string message;
  try {
    BlockWriter writer;
    BlockFile file(writer, folder / "large", 3 * BlockWriter::kBlockBytes);
    file.append(bytes_of(std::string(3 * BlockWriter::kBlockBytes, 'x')));
    file.end();
    file.sync_and_close();
  } catch (const NoSpaceError& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("large"));
  EXPECT_THAT(message, HasSubstr("limit of the size of files"));
}

}  // namespace
}  // namespace teratron::testing

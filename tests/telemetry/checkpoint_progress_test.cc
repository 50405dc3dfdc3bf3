// How far a checkpoint is, by the checksums alone.
#include "telemetry/checkpoint_progress.h"

#include <gtest/gtest.h>

#include "base/files/checksum.h"
#include "base/files/file.h"
#include "base/temporary_folder.h"

namespace teratron::testing {
namespace {

TEST(CheckpointProgress, IsTheShareOfItsBytesThatChecksumsHaveSeen) {
  const TemporaryFolder folder;
  const std::string part(5 << 20, 'x');
  std::filesystem::create_directories(folder.path() / "below");
  for (const char* name : {"a", "b", "below/c", "below/d"}) write_file_atomically(folder.path() / name, part);
  const std::uint64_t bytes = bytes_of_folder(folder.path());
  EXPECT_EQ(bytes, 4 * part.size());
  checksum_of(part);  // before it begins
  const LongTask::Share share = share_of_checksums(bytes);
  for (int done = 1; done <= 4; ++done) {
    checksum_of(part);
    EXPECT_DOUBLE_EQ(share(), done / 4.0);
  }
  EXPECT_EQ(share_of_checksums(0)(), 0);
  EXPECT_EQ(bytes_of_folder(folder.path() / "none"), 0U);
}

}  // namespace
}  // namespace teratron::testing

// The content of a shard's .bin that is read while others may touch or overwrite it.
#pragma once

#include <filesystem>
#include <string>

#include "base/files/random_access_file.h"

namespace teratron {

// Remembers a sample of the file from when it was opened: all of a small one, blocks spread over a larger one.
class TokenContent {
 public:
  explicit TokenContent(const RandomAccessFile& file) : sample_(sample_of(file)) {}

  // Compares the file with the sample, and with the checksums in the sidecar of the corpus at `prefix`, where that
  // tells of this very file: the prefix still names it, and `index_checksum` is that of its .idx. Then all of the file
  // is compared, or blocks spread over it where it is larger than kMostCompared. Empty: nothing differs. It tells the
  // user about a comparison that may take long. EnvironmentError: the file cannot be read.
  std::string fault(const RandomAccessFile& file, const std::filesystem::path& prefix,
                    const std::string& index_checksum) const;

  static constexpr std::uint64_t kMostCompared = std::uint64_t{4} << 30;

 private:
  static std::string sample_of(const RandomAccessFile& file);

  std::string sample_;  // its checksum
};

}  // namespace teratron

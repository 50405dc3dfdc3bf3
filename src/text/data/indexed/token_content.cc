#include "data/indexed/token_content.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/host/standard_streams.h"
#include "base/host/threads.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/indexed/indexed_format.h"

namespace teratron {
namespace {

constexpr std::int64_t kSampledBytes = std::int64_t{64} << 10;  // of a block
constexpr std::int64_t kSampledBlocks = 64;

// Of `most` blocks out of `all`, spread evenly, the first and the last among them.
std::int64_t spread(std::int64_t i, std::int64_t most, std::int64_t all) {
  return all <= most ? i
                     : static_cast<std::int64_t>(static_cast<double>(i) * static_cast<double>(all - 1) /
                                                 static_cast<double>(most - 1));
}

std::vector<std::byte> block_of(const RandomAccessFile& file, std::int64_t number, std::int64_t block_bytes) {
  const auto begin = static_cast<std::uint64_t>(number * block_bytes);
  std::vector<std::byte> block(std::min(static_cast<std::uint64_t>(block_bytes), file.size() - begin));
  file.read(begin, block);
  return block;
}

std::int64_t blocks_of(const RandomAccessFile& file, std::int64_t block_bytes) {
  return (static_cast<std::int64_t>(file.size()) + block_bytes - 1) / block_bytes;
}

// The checksums that the sidecar tells of this very file; none where the corpus was made anew under its name.
std::optional<FileBlocks> written_blocks(const RandomAccessFile& file, const std::filesystem::path& prefix,
                                         const std::string& index_checksum) {
  if (!file.is_named(file.path())) return std::nullopt;
  try {
    const std::optional<CorpusSidecar> sidecar = read_sidecar(prefix);
    if (!sidecar || sidecar->idx.checksum != index_checksum || !std::cmp_equal(sidecar->bin.bytes, file.size())) {
      return std::nullopt;
    }
    return sidecar->bin.blocks;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// The number of the first block found that differs; -1: none.
std::int64_t differing_block(const RandomAccessFile& file, const FileBlocks& written) {
  const std::int64_t all = blocks_of(file, written.bytes);
  const std::int64_t most =
      std::max<std::int64_t>(2, static_cast<std::int64_t>(TokenContent::kMostCompared) / written.bytes);
  std::atomic<std::int64_t> found{-1};
  parallel_for(std::min(all, most), 1, [&](std::int64_t i, std::int64_t) {
    const std::int64_t number = spread(i, most, all);
    if (block_checksum_of(block_of(file, number, written.bytes)) !=
        written.checksums[static_cast<std::size_t>(number)]) {
      found = number;
    }
  });
  return found;
}

}  // namespace

std::string TokenContent::sample_of(const RandomAccessFile& file) {
  const std::int64_t all = blocks_of(file, kSampledBytes);
  Checksum checksum;
  for (std::int64_t i = 0; i < std::min(all, kSampledBlocks); ++i) {
    checksum.update(block_of(file, spread(i, kSampledBlocks, all), kSampledBytes));
  }
  return checksum.digest();
}

std::string TokenContent::fault(const RandomAccessFile& file, const std::filesystem::path& prefix,
                                const std::string& index_checksum) const {
  if (sample_of(file) != sample_) return "something has written to it";
  const std::optional<FileBlocks> written = written_blocks(file, prefix, index_checksum);
  if (!written) return "";
  constexpr std::uint64_t kQuick = std::uint64_t{256} << 20;
  if (file.size() > kQuick)
    report_to_user(fmt::format("'{}' was touched: comparing its content", file.path().string()));
  const std::int64_t block = differing_block(file, *written);
  if (block < 0) return "";
  return fmt::format("something has written to it, within bytes {} to {}", block * written->bytes,
                     std::min<std::int64_t>((block + 1) * written->bytes, static_cast<std::int64_t>(file.size())));
}

}  // namespace teratron

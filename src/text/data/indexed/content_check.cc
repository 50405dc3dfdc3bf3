#include "data/indexed/content_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/host/threads.h"
#include "base/philox.h"
#include "data/indexed/corpus_sidecar.h"

namespace teratron {
namespace {

// Beside the streams of epoch_order.cc and training_data.cc.
constexpr std::uint32_t kBlockStream = 65, kWindowStream = 66;

[[noreturn]] void throw_other_content(const std::filesystem::path& file, const std::filesystem::path& prefix,
                                      const std::string& what) {
  throw_user_error(
      "'{}' is not what was written: {}, says '{}'; copy the corpus again ('teratron data verify {}' looks at all of "
      "it), or remove that file if another program has made the corpus anew",
      file.string(), what, sidecar_path(prefix).string(), prefix.string());
}

// `count` of `all` numbers, the first and the last among them, in order.
std::vector<std::int64_t> drawn_numbers(std::int64_t all, std::int64_t count, std::uint64_t seed,
                                        std::uint32_t stream) {
  std::set<std::int64_t> numbers;
  if (all <= count) {
    for (std::int64_t number = 0; number < all; ++number) numbers.insert(number);
  } else {
    numbers = {0, all - 1};
    RandomSequence random({.seed = seed, .purpose = RandomPurpose::kShuffle, .stream = stream});
    while (std::ssize(numbers) < count) {
      numbers.insert(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(all))));
    }
  }
  return {numbers.begin(), numbers.end()};
}

// A shard and its sidecar, if it has one.
class ShardCheck {
 public:
  ShardCheck(const IndexedShard& shard, std::int64_t vocab_size)
      : shard_(shard), vocab_size_(vocab_size), sidecar_(read_sidecar(shard.prefix())) {
    if (!sidecar_) return;
    require_written_sizes(shard.prefix(), *sidecar_);
    if (shard.index().checksum() == sidecar_->idx.checksum) return;
    throw_other_content(idx_path(shard.prefix()), shard.prefix(), "its checksum differs");
  }

  void run(std::int64_t most_blocks, std::uint64_t seed) const {
    const std::int64_t block_bytes = blocks() != nullptr ? blocks()->bytes : kChecksumBlockBytes;
    const auto bytes = static_cast<std::int64_t>(shard_.bin_bytes());
    const std::int64_t all = (bytes + block_bytes - 1) / block_bytes;
    const std::vector<std::int64_t> numbers = drawn_numbers(all, most_blocks, seed, kBlockStream);
    parallel_for(std::ssize(numbers), 1, [&](std::int64_t i, std::int64_t) {
      const std::int64_t number = numbers[static_cast<std::size_t>(i)], begin = number * block_bytes;
      check_block(number, begin, std::min(block_bytes, bytes - begin));
    });
    // Sidecars from before blocks had checksums have one of the file.
    if (!sidecar_ || blocks() != nullptr || std::ssize(numbers) < all) return;
    if (shard_.bin_checksum() != sidecar_->bin.checksum) {
      throw_other_content(bin_path(shard_.prefix()), shard_.prefix(), "its checksum differs");
    }
  }

 private:
  const FileBlocks* blocks() const { return sidecar_ && sidecar_->bin.blocks ? &*sidecar_->bin.blocks : nullptr; }

  void check_block(std::int64_t number, std::int64_t begin, std::int64_t bytes) const {
    if (blocks() != nullptr) {
      std::vector<std::byte> block(static_cast<std::size_t>(bytes));
      shard_.read_bytes(static_cast<std::uint64_t>(begin), block);
      if (block_checksum_of(block) != blocks()->checksums[static_cast<std::size_t>(number)]) {
        throw_other_content(bin_path(shard_.prefix()), shard_.prefix(),
                            fmt::format("bytes {} to {} differ", begin, begin + bytes));
      }
    }
    const std::int64_t token_bytes = size_of(shard_.token_type());
    std::vector<std::int32_t> ids(static_cast<std::size_t>(bytes / token_bytes));
    shard_.read(begin / token_bytes, ids, vocab_size_);
  }

  const IndexedShard& shard_;
  std::int64_t vocab_size_;
  std::optional<CorpusSidecar> sidecar_;
};

void add_numbers(Checksum& checksum, std::span<const std::int64_t> numbers) { checksum.update(std::as_bytes(numbers)); }

// A hash of the lengths of sequences and of their documents, of all shards as one.
void add_lengths(Checksum& checksum, const IndexedDataset& dataset) {
  for (const IndexedShard& shard : dataset.shards()) {
    checksum.update(std::as_bytes(std::span(shard.index().lengths())));
  }
  if (dataset.sequences() == dataset.documents()) return;
  constexpr std::int64_t kAtOnce = 1 << 16;
  std::vector<std::int64_t> firsts;
  for (std::int64_t document = 0; document < dataset.documents(); ++document) {
    firsts.push_back(dataset.first_sequence(document));
    if (std::ssize(firsts) < kAtOnce && document + 1 < dataset.documents()) continue;
    add_numbers(checksum, firsts);
    firsts.clear();
  }
}

}  // namespace

void check_content(const IndexedDataset& dataset, std::int64_t vocab_size, std::uint64_t seed, std::int64_t blocks) {
  double all_bytes = 1;
  for (const IndexedShard& shard : dataset.shards()) all_bytes += static_cast<double>(shard.bin_bytes());
  for (const IndexedShard& shard : dataset.shards()) {
    const double share = static_cast<double>(shard.bin_bytes()) / all_bytes;
    const auto most = static_cast<std::int64_t>(share * static_cast<double>(blocks)) + 1;
    ShardCheck(shard, vocab_size).run(std::max<std::int64_t>(2, most), seed);
  }
}

std::int64_t content_fingerprint(const IndexedDataset& dataset) {
  constexpr std::int64_t kWindow = 1 << 14, kWindows = 64;  // tokens per window
  Checksum checksum;
  const std::int64_t tokens = dataset.tokens(), windows = (tokens + kWindow - 1) / kWindow;
  add_numbers(checksum, std::array{dataset.documents(), dataset.sequences(), tokens});
  add_lengths(checksum, dataset);
  std::vector<std::int32_t> ids;
  for (const std::int64_t window :
       drawn_numbers(windows, kWindows, static_cast<std::uint64_t>(tokens), kWindowStream)) {
    ids.resize(static_cast<std::size_t>(std::min(kWindow, tokens - window * kWindow)));
    dataset.read(window * kWindow, ids);
    checksum.update(std::as_bytes(std::span<const std::int32_t>(ids)));
  }
  return static_cast<std::int64_t>(std::stoull(checksum.digest(), nullptr, 16) >> 1);
}

}  // namespace teratron

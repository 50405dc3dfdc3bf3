#include "data/indexed/indexed_shard.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/checksum.h"
#include "base/host/standard_streams.h"
#include "base/host/threads.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/indexed/indexed_format.h"

namespace teratron {
namespace {

constexpr std::int64_t kSampledBytes = std::int64_t{64} << 10;  // per block
constexpr std::int64_t kSampledBlocks = 64;

// Indices of `most` blocks out of `all`, spread evenly, with the first and the last one.
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

// The checksums in the sidecar of this very file; none if the corpus was made again under its name.
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

// The index of the first differing block, or -1.
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
    report_to_user(fmt::format("'{}' has a new time; comparing its content", file.path().string()));
  const std::int64_t block = differing_block(file, *written);
  if (block < 0) return "";
  return fmt::format("something has written to it, within bytes {} to {}", block * written->bytes,
                     std::min<std::int64_t>((block + 1) * written->bytes, static_cast<std::int64_t>(file.size())));
}

namespace {

RandomAccessFile open_part(const std::filesystem::path& file, const std::filesystem::path& prefix) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    const std::string ending = prefix.extension().string();
    if (ending != ".bin" && ending != ".idx" && std::filesystem::is_regular_file(prefix, ignored)) {
      throw_user_error(
          "'{0}' is a file, and a tokenised corpus is needed, which is named by its PREFIX; make one of the file's "
          "text "
          "with 'teratron data tokenize --tokenizer DIR --out PREFIX {0}'",
          prefix.string());
    }
    throw_user_error(
        "no dataset at '{}': '{}' is missing; give the path without '.bin' or '.idx', or make the dataset "
        "with 'teratron data tokenize'",
        prefix.string(), file.string());
  }
  return RandomAccessFile(file);
}

// Damage of the .idx shows in various ways; its checksum, if there is one, proves it.
SequenceIndex read_index(const RandomAccessFile& index, const RandomAccessFile& tokens,
                         const std::filesystem::path& prefix) {
  try {
    return {index, tokens};
  } catch (const UserError&) {
    const std::optional<CorpusSidecar> sidecar = read_sidecar(prefix);
    if (!sidecar || !std::cmp_equal(index.size(), sidecar->idx.bytes) || checksum_of(index) == sidecar->idx.checksum) {
      throw;
    }
  }
  throw_user_error(
      "'{}' is damaged: its checksum is not the one that it was written with, says '{}'; copy the corpus again, or "
      "remove that file if another program has made the corpus anew",
      index.path().string(), sidecar_path(prefix).string());
}

}  // namespace

IndexedShard IndexedShard::open(const std::filesystem::path& prefix) {
  const RandomAccessFile index_file = open_part(idx_path(prefix), prefix);
  RandomAccessFile token_file = open_part(bin_path(prefix), prefix);
  SequenceIndex index = read_index(index_file, token_file, prefix);
  return {prefix, std::move(index), std::move(token_file)};
}

IndexedShard::IndexedShard(std::filesystem::path prefix, SequenceIndex index, RandomAccessFile token_file)
    : prefix_(std::move(prefix)), index_(std::move(index)), token_file_(std::move(token_file)), content_(token_file_) {}

void IndexedShard::require_unchanged() const {
  token_file_.require_unchanged([&] { return content_.fault(token_file_, prefix_, index_.checksum()); });
}

void IndexedShard::read_bytes(std::uint64_t offset, std::span<std::byte> out) const {
  token_file_.read(offset, out);
  require_unchanged();
}

std::string IndexedShard::bin_checksum() const {
  std::string checksum = checksum_of(token_file_);
  require_unchanged();
  return checksum;
}

void IndexedShard::read(std::int64_t position, std::span<std::int32_t> out, std::int64_t vocab_size) const {
  const auto count = static_cast<std::int64_t>(out.size());
  check(position >= 0 && count <= tokens() && position <= tokens() - count, "read: outside the shard");
  with_token_type(token_type(), [&]<class T>(T) { read_as<T>(position, out, vocab_size); });
  require_unchanged();
}

template <class T>
void IndexedShard::read_as(std::int64_t position, std::span<std::int32_t> out, std::int64_t vocab_size) const {
  // A stored value as a wider unsigned number: negative ones exceed every vocabulary.
  using Unsigned = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr std::int64_t kMost = std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
  const auto limit = static_cast<std::uint64_t>(std::clamp<std::int64_t>(vocab_size, 0, kMost));
  std::array<T, 4096> values;
  while (!out.empty()) {
    const auto here = std::span(values).first(std::min(out.size(), values.size()));
    token_file_.read(static_cast<std::uint64_t>(position) * sizeof(T), std::as_writable_bytes(here));
    Unsigned largest = 0;
    for (std::size_t i = 0; i < here.size(); ++i) {
      largest = std::max(largest, static_cast<Unsigned>(here[i]));
      out[i] = static_cast<std::int32_t>(here[i]);  // NOLINT: numbers of 8 bits, no characters
    }
    if (largest >= limit) {
      const auto bad = std::ranges::find_if(here, [&](T value) { return static_cast<Unsigned>(value) >= limit; });
      throw_outside(static_cast<std::int64_t>(*bad), position + (bad - here.begin()), vocab_size);
    }
    out = out.subspan(here.size());
    position += static_cast<std::int64_t>(here.size());
  }
}

void IndexedShard::throw_outside(std::int64_t id, std::int64_t position, std::int64_t vocab_size) const {
  if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
    throw_user_error("'{}' holds {} at token {} (document {}), which is no token id; tokenise the text again",
                     token_file_.path().string(), id, position, index_.document_at(position));
  }
  throw_user_error(
      "'{}' holds token id {} at position {} (document {}), but the vocabulary has {} tokens, 0 to {}; "
      "use the tokenizer that made this dataset, or tokenise the text again",
      token_file_.path().string(), id, position, index_.document_at(position), vocab_size, vocab_size - 1);
}

void IndexedShard::check_vocabulary(std::int64_t vocab_size) const {
  constexpr std::int64_t kGrain = 1 << 18;
  const bool holds_any_value =
      token_type() == TokenType::kU16 ? vocab_size > 0xffff : token_type() == TokenType::kU8 && vocab_size > 0xff;
  if (holds_any_value) return;
  // The first failing range is read again below, so that the same id is reported whichever thread met one first.
  std::vector<std::uint8_t> is_bad(static_cast<std::size_t>((tokens() + kGrain - 1) / kGrain));
  const auto read_range = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(end - begin));
    read(begin, ids, vocab_size);
  };
  parallel_for(tokens(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    try {
      read_range(begin, end);
    } catch (const UserError&) {
      is_bad[static_cast<std::size_t>(begin / kGrain)] = 1;
    }
  });
  const auto first = std::ranges::find(is_bad, 1);
  if (first == is_bad.end()) return;
  const std::int64_t begin = (first - is_bad.begin()) * kGrain;
  read_range(begin, std::min(tokens(), begin + kGrain));
}

}  // namespace teratron

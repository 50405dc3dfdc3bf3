#include "data/indexed/indexed_shard.h"

#include <atomic>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/host/threads.h"

namespace teratron {
namespace {

template <class... Args>
[[noreturn]] void throw_damaged(const std::filesystem::path& file, fmt::format_string<Args...> format, Args&&... args) {
  throw_user_error("'{}' is damaged: {}; copy both the .bin and the .idx again, or tokenise the text again",
                   file.string(), fmt::format(format, std::forward<Args>(args)...));
}

MappedFile map_part(const std::filesystem::path& file, const std::filesystem::path& prefix) {
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
  return MappedFile(file);
}

// Tokens have no alignment to rely on: a .bin may be mapped from anywhere.
template <class T>
T token_at(const MappedFile& file, std::int64_t position) {
  T value;
  std::memcpy(&value, file.bytes().data() + static_cast<std::size_t>(position) * sizeof(T), sizeof(T));
  return value;
}

TokenType parse_token_type(std::uint8_t code, const std::filesystem::path& file) {
  switch (static_cast<TokenType>(code)) {
    case TokenType::kU8:
    case TokenType::kI8:
    case TokenType::kI16:
    case TokenType::kI32:
    case TokenType::kI64:
    case TokenType::kU16: return static_cast<TokenType>(code);
  }
  if (code == 6 || code == 7) {
    throw_user_error("'{}' holds floating point values (type code {}), tokens are needed", file.string(), code);
  }
  throw_damaged(file, "its type code {} does not exist", code);
}

}  // namespace

IndexedShard IndexedShard::open(const std::filesystem::path& prefix) {
  MappedFile index = map_part(idx_path(prefix), prefix), tokens = map_part(bin_path(prefix), prefix);
  IndexedShard shard(prefix, std::move(index), std::move(tokens));
  shard.parse_header();
  shard.check_sequences();
  shard.check_documents();
  return shard;
}

IndexedShard::IndexedShard(std::filesystem::path prefix, MappedFile index, MappedFile tokens)
    : prefix_(std::move(prefix)), index_file_(std::move(index)), token_file_(std::move(tokens)) {}

// The index's arrays follow a header of 34 bytes, so nothing in it is aligned.
template <class T>
T IndexedShard::load(std::size_t offset) const {
  T value;
  std::memcpy(&value, index_file_.bytes().data() + offset, sizeof(T));
  return value;
}

void IndexedShard::parse_header() {
  const auto& file = index_file_.path();
  const std::size_t size = index_file_.bytes().size();
  if (!index_file_.text().starts_with(kIndexMagic)) {
    throw_user_error(
        "'{}' is not the index of a dataset: it does not begin with \"MMIDIDX\"; make the dataset with "
        "'teratron data tokenize'",
        file.string());
  }
  if (size < kIndexHeaderBytes) throw_damaged(file, "it ends within its header, after {} bytes", size);
  if (const auto version = load<std::uint64_t>(9); version != kIndexVersion) {
    throw_user_error("'{}' has version {} of the format, only version 1 is known", file.string(), version);
  }
  token_type_ = parse_token_type(load<std::uint8_t>(17), file);
  const auto sequences = load<std::uint64_t>(18), entries = load<std::uint64_t>(26);
  // An entry takes at least 8 bytes, so bounding both counts by the size first keeps the sum below from overflowing.
  const std::uint64_t expected =
      sequences > size || entries > size ? 0 : kIndexHeaderBytes + sequences * 12 + entries * 8;
  if (expected != size) {
    throw_damaged(file, "it has {} bytes, which does not fit the {} sequences and {} document entries it announces",
                  size, sequences, entries);
  }
  if (entries == 0) throw_damaged(file, "it has no document entries");
  sequences_ = static_cast<std::int64_t>(sequences);
  documents_ = static_cast<std::int64_t>(entries) - 1;
  lengths_at_ = kIndexHeaderBytes;
  offsets_at_ = lengths_at_ + sequences * 4;
  documents_at_ = offsets_at_ + sequences * 8;
  tokens_ = static_cast<std::int64_t>(token_file_.bytes().size()) / size_of(token_type_);
}

void IndexedShard::check_sequences() const {
  const auto& file = index_file_.path();
  const std::int64_t token_bytes = size_of(token_type_);
  const auto bin_bytes = static_cast<std::int64_t>(token_file_.bytes().size());
  std::int64_t expected = 0;  // stays within the sizes of two files, or we have thrown
  for (std::int64_t sequence = 0; sequence < sequences_; ++sequence) {
    const std::int64_t length = length_of(sequence);
    const auto offset = load<std::int64_t>(offsets_at_ + static_cast<std::size_t>(sequence) * 8);
    if (length < 0) throw_damaged(file, "sequence {} has the length {}", sequence, length);
    if (offset != expected) {
      throw_damaged(file, "sequence {} is said to begin at byte {} of the .bin, but the ones before it end at byte {}",
                    sequence, offset, expected);
    }
    expected += length * token_bytes;
    if (expected > bin_bytes) {
      throw_user_error(
          "'{}' is cut short: it has {} bytes, and sequence {} of {} needs bytes {} to {}; copy it again, "
          "or tokenise the text again",
          token_file_.path().string(), bin_bytes, sequence, sequences_, offset, expected);
    }
  }
  if (expected != bin_bytes) {
    throw_user_error(
        "'{}' has {} bytes, but the sequences in '{}' end at byte {}: the two files do not belong "
        "together; copy both again, or tokenise the text again",
        token_file_.path().string(), bin_bytes, file.string(), expected);
  }
}

void IndexedShard::check_documents() const {
  const auto& file = index_file_.path();
  std::int64_t previous = 0;
  for (std::int64_t document = 0; document <= documents_; ++document) {
    const std::int64_t first = first_sequence(document);
    if (first < previous || first > sequences_) {
      throw_damaged(file, "document {} is said to begin at sequence {}, outside {} to {}", document, first, previous,
                    sequences_);
    }
    previous = first;
  }
  if (first_sequence(0) != 0 || previous != sequences_) {
    throw_damaged(file, "its documents cover sequences {} to {} of 0 to {}", first_sequence(0), previous, sequences_);
  }
}

std::int64_t IndexedShard::length_of(std::int64_t sequence) const {
  return load<std::int32_t>(lengths_at_ + static_cast<std::size_t>(sequence) * 4);
}

std::int64_t IndexedShard::begin_of(std::int64_t sequence) const {
  if (sequence == sequences_) return tokens_;
  return load<std::int64_t>(offsets_at_ + static_cast<std::size_t>(sequence) * 8) / size_of(token_type_);
}

std::int64_t IndexedShard::first_sequence(std::int64_t document) const {
  check(document >= 0 && document <= documents_, "first_sequence: no such document");
  return load<std::int64_t>(documents_at_ + static_cast<std::size_t>(document) * 8);
}

TokenRange IndexedShard::sequence(std::int64_t sequence) const {
  check(sequence >= 0 && sequence < sequences_, "sequence: no such sequence");
  return {begin_of(sequence), begin_of(sequence + 1)};
}

std::int64_t IndexedShard::sequence_size(std::int64_t sequence) const {
  check(sequence >= 0 && sequence < sequences_, "sequence_size: no such sequence");
  return length_of(sequence);
}

TokenRange IndexedShard::document(std::int64_t document) const {
  check(document >= 0 && document < documents_, "document: no such document");
  return {begin_of(first_sequence(document)), begin_of(first_sequence(document + 1))};
}

std::int64_t IndexedShard::document_at(std::int64_t position) const {
  std::int64_t low = 0, high = documents_ - 1;  // the first document that ends behind the position
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (document(middle).end > position) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

std::span<const std::byte> IndexedShard::stored(TokenRange range) const {
  check(range.begin >= 0 && range.begin <= range.end && range.end <= tokens_, "stored: outside the shard");
  const auto bytes = static_cast<std::size_t>(size_of(token_type_));
  return token_file_.bytes().subspan(static_cast<std::size_t>(range.begin) * bytes,
                                     static_cast<std::size_t>(range.size()) * bytes);
}

void IndexedShard::release(TokenRange range) const {
  const auto bytes = static_cast<std::size_t>(size_of(token_type_));
  token_file_.release(static_cast<std::size_t>(range.begin) * bytes, static_cast<std::size_t>(range.end) * bytes);
}

void IndexedShard::read(std::int64_t position, std::span<std::int32_t> out) const {
  const auto count = static_cast<std::int64_t>(out.size());
  check(position >= 0 && count <= tokens_ && position <= tokens_ - count, "read: outside the shard");
  with_token_type(token_type_, [&]<class T>(T) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = token_at<T>(token_file_, position + i);
      if constexpr (std::is_signed_v<T>) {
        if (value < 0 || std::int64_t{value} > std::numeric_limits<std::int32_t>::max()) {
          throw_user_error("'{}' holds {} at token {}, which is no token id; tokenise the text again",
                           token_file_.path().string(), value, position + i);
        }
      }
      out[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(value);  // NOLINT: numbers of 8 bits, no characters
    }
  });
}

void IndexedShard::check_vocabulary(std::int64_t vocab_size) const {
  constexpr std::int64_t kGrain = 1 << 20;
  std::atomic<std::int64_t> first_bad = tokens_;
  with_token_type(token_type_, [&]<class T>(T) {
    if (std::is_unsigned_v<T> && std::int64_t{std::numeric_limits<T>::max()} < vocab_size) return;
    parallel_for(tokens_, kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t position = begin; position < end; ++position) {
        const auto id = std::int64_t{token_at<T>(token_file_, position)};
        if (id >= 0 && id < vocab_size) continue;
        std::int64_t found = first_bad;
        while (position < found && !first_bad.compare_exchange_weak(found, position)) {
        }
        return;
      }
    });
    if (first_bad == tokens_) return;
    throw_user_error(
        "'{}' holds token id {} at position {} (document {}), but the vocabulary has {} tokens, 0 to {}; "
        "use the tokenizer that made this dataset, or tokenise the text again",
        token_file_.path().string(), token_at<T>(token_file_, first_bad), first_bad.load(), document_at(first_bad),
        vocab_size, vocab_size - 1);
  });
}

}  // namespace teratron

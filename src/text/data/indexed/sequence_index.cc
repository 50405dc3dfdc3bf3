#include "data/indexed/sequence_index.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/files/checksum.h"

namespace teratron {
namespace {

constexpr std::uint64_t kPieceOfChecksum = std::uint64_t{1} << 20;

template <class... Args>
[[noreturn]] void throw_damaged(const std::filesystem::path& file, fmt::format_string<Args...> format, Args&&... args) {
  throw_user_error("'{}' is damaged: {}; copy both the .bin and the .idx again, or tokenise the text again",
                   file.string(), fmt::format(format, std::forward<Args>(args)...));
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

std::string checksum_of(const RandomAccessFile& file) {
  Checksum checksum;
  std::vector<std::byte> piece;
  for (std::uint64_t at = 0; at < file.size(); at += piece.size()) {
    piece.resize(std::min(kPieceOfChecksum, file.size() - at));
    file.read(at, piece);
    checksum.update(piece);
  }
  return checksum.digest();
}

// Reads the file from its beginning to its end.
class SequenceIndex::Reader {
 public:
  explicit Reader(const RandomAccessFile& file) : file_(file) {}

  const std::filesystem::path& path() const { return file_.path(); }
  std::uint64_t size() const { return file_.size(); }

  template <class T>
  void read(std::span<T> values) {
    const std::span<std::byte> bytes = std::as_writable_bytes(values);
    file_.read(offset_, bytes);
    checksum_.update(bytes);
    offset_ += bytes.size();
  }
  template <class T>
  T value() {
    T value;
    read(std::span(&value, 1));
    return value;
  }
  // Calls body(number, value) for the next `count` values.
  template <class Body>
  void each(std::int64_t count, const Body& body) {
    constexpr std::int64_t kAtOnce = 1 << 16;
    std::vector<std::int64_t> values(static_cast<std::size_t>(std::min(count, kAtOnce)));
    for (std::int64_t first = 0; first < count; first += kAtOnce) {
      const auto here = std::span(values).first(static_cast<std::size_t>(std::min(kAtOnce, count - first)));
      read(here);
      for (std::size_t i = 0; i < here.size(); ++i) body(first + static_cast<std::int64_t>(i), here[i]);
    }
  }
  std::string checksum() const {
    std::string digest = checksum_.digest();
    file_.require_unchanged([&] { return checksum_of(file_) == digest ? "" : "something has written to it"; });
    return digest;
  }

 private:
  const RandomAccessFile& file_;
  std::uint64_t offset_ = 0;
  Checksum checksum_;
};

SequenceIndex::SequenceIndex(const RandomAccessFile& index, const RandomAccessFile& tokens) {
  Reader reader(index);
  const auto& file = index.path();
  const std::uint64_t size = index.size();
  std::string magic(std::min<std::uint64_t>(size, kIndexMagic.size()), '\0');
  reader.read(std::span(magic));
  if (magic != kIndexMagic) {
    throw_user_error(
        "'{}' is not the index of a dataset: it does not begin with \"MMIDIDX\"; make the dataset with "
        "'teratron data tokenize'",
        file.string());
  }
  if (size < kIndexHeaderBytes) throw_damaged(file, "it ends within its header, after {} bytes", size);
  if (const auto version = reader.value<std::uint64_t>(); version != kIndexVersion) {
    throw_user_error("'{}' has version {} of the format, only version 1 is known", file.string(), version);
  }
  token_type_ = parse_token_type(reader.value<std::uint8_t>(), file);
  const auto sequences = reader.value<std::uint64_t>(), entries = reader.value<std::uint64_t>();
  // An entry takes at least 8 bytes, so bounding both counts by the size first keeps the sum below from overflowing.
  const std::uint64_t expected =
      sequences > size || entries > size ? 0 : kIndexHeaderBytes + sequences * 12 + entries * 8;
  if (expected != size) {
    throw_damaged(file, "it has {} bytes, which does not fit the {} sequences and {} document entries it announces",
                  size, sequences, entries);
  }
  if (entries == 0) throw_damaged(file, "it has no document entries");
  documents_ = static_cast<std::int64_t>(entries) - 1;
  lengths_.resize(sequences);
  reader.read(std::span(lengths_));
  check_offsets(reader, tokens);
  read_documents(reader);
  checksum_ = reader.checksum();
}

void SequenceIndex::check_offsets(Reader& reader, const RandomAccessFile& tokens) {
  const std::int64_t token_bytes = size_of(token_type_);
  const auto bin_bytes = static_cast<std::int64_t>(tokens.size());
  std::int64_t expected = 0;  // stays within the sizes of two files, or we have thrown
  marks_.reserve(lengths_.size() / kSequencesPerMark + 1);
  reader.each(sequences(), [&](std::int64_t sequence, std::int64_t offset) {
    const std::int64_t length = lengths_[static_cast<std::size_t>(sequence)];
    if (length < 0) throw_damaged(reader.path(), "sequence {} has the length {}", sequence, length);
    if (offset != expected) {
      throw_damaged(reader.path(),
                    "sequence {} is said to begin at byte {} of the .bin, but the ones before it end at byte {}",
                    sequence, offset, expected);
    }
    if (sequence % kSequencesPerMark == 0) marks_.push_back(offset / token_bytes);
    expected += length * token_bytes;
    if (expected > bin_bytes) {
      throw_user_error(
          "'{}' is cut short: it has {} bytes, and sequence {} of {} needs bytes {} to {}; copy it again, "
          "or tokenise the text again",
          tokens.path().string(), bin_bytes, sequence, sequences(), offset, expected);
    }
  });
  if (expected != bin_bytes) {
    throw_user_error(
        "'{}' has {} bytes, but the sequences in '{}' end at byte {}: the two files do not belong "
        "together; copy both again, or tokenise the text again",
        tokens.path().string(), bin_bytes, reader.path().string(), expected);
  }
  tokens_ = bin_bytes / token_bytes;
}

void SequenceIndex::read_documents(Reader& reader) {
  std::int64_t previous = 0, first_of_all = 0;
  bool is_sequence_each = documents_ == sequences();
  if (!is_sequence_each) first_sequences_.reserve(static_cast<std::size_t>(documents_) + 1);
  reader.each(documents_ + 1, [&](std::int64_t document, std::int64_t first) {
    if (first < previous || first > sequences()) {
      throw_damaged(reader.path(), "document {} is said to begin at sequence {}, outside {} to {}", document, first,
                    previous, sequences());
    }
    if (document == 0) first_of_all = first;
    if (is_sequence_each && first != document) {  // they are identical so far
      is_sequence_each = false;
      first_sequences_.resize(static_cast<std::size_t>(document));
      std::iota(first_sequences_.begin(), first_sequences_.end(), std::int64_t{0});
    }
    if (!is_sequence_each) first_sequences_.push_back(first);
    previous = first;
  });
  if (first_of_all != 0 || previous != sequences()) {
    throw_damaged(reader.path(), "its documents cover sequences {} to {} of 0 to {}", first_of_all, previous,
                  sequences());
  }
}

std::int64_t SequenceIndex::begin_of(std::int64_t sequence) const {
  if (sequence == sequences()) return tokens_;
  const std::int64_t mark = sequence / kSequencesPerMark;
  const auto lengths = lengths_.begin();
  return std::accumulate(lengths + mark * kSequencesPerMark, lengths + sequence,
                         marks_[static_cast<std::size_t>(mark)]);
}

TokenRange SequenceIndex::sequence(std::int64_t sequence) const {
  check(sequence >= 0 && sequence < sequences(), "sequence: no such sequence");
  const std::int64_t begin = begin_of(sequence);
  return {begin, begin + lengths_[static_cast<std::size_t>(sequence)]};
}

std::int64_t SequenceIndex::sequence_size(std::int64_t sequence) const {
  check(sequence >= 0 && sequence < sequences(), "sequence_size: no such sequence");
  return lengths_[static_cast<std::size_t>(sequence)];
}

TokenRange SequenceIndex::document(std::int64_t document) const {
  check(document >= 0 && document < documents_, "document: no such document");
  if (first_sequences_.empty()) return sequence(document);
  return {begin_of(first_sequence(document)), begin_of(first_sequence(document + 1))};
}

std::int64_t SequenceIndex::first_sequence(std::int64_t document) const {
  check(document >= 0 && document <= documents_, "first_sequence: no such document");
  return first_sequences_.empty() ? document : first_sequences_[static_cast<std::size_t>(document)];
}

std::int64_t SequenceIndex::document_at(std::int64_t position) const {
  std::int64_t low = 0, high = documents_ - 1;  // the first document that ends after the position
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

}  // namespace teratron

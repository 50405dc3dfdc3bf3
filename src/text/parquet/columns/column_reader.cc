#include "parquet/columns/column_reader.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <span>

#include "parquet/columns/compression.h"

namespace teratron::parquet {
namespace {

unsigned bits_of_level(int most) { return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(most))); }

// Levels of a page of the first version, with their length before them.
BitRuns take_levels(ByteReader& bytes, Encoding encoding, int most) {
  if (most == 0) return {};
  if (encoding != Encoding::kRuns) throw_unsupported("levels in the encoding {}", static_cast<int>(encoding));
  return {bytes.take(bytes.number<std::uint32_t>()), bits_of_level(most)};
}

// Gives `bytes`, whose content is lost, a capacity of `size` and no more.
void reserve_anew(std::vector<char>& bytes, std::size_t size) {
  std::vector<char>().swap(bytes);  // first, so that there is never room for both
  bytes.reserve(size);
}

}  // namespace

void PageMemory::count(std::size_t before, std::size_t now) {
  const std::size_t held = held_ - before + now;
  if (now > before && held > most_) throw_unsupported("pages that take more than {} MiB together", most_ >> 20);
  held_ = held;
}

std::span<char> PageMemory::packed(std::size_t size) {
  if (size > packed_.capacity()) {
    count(packed_.capacity(), size);
    reserve_anew(packed_, size);
  }
  if (size > packed_.size()) packed_.resize(size);
  return packed_;
}

ColumnReader::ColumnReader(const RandomAccessFile& file, const Leaf& leaf, const ColumnChunk& chunk, PageMemory& memory)
    : file_(file),
      leaf_(leaf),
      chunk_(chunk),
      memory_(memory),
      at_(chunk.begin),
      end_(chunk.begin + chunk.size),
      values_left_(chunk.values) {
  if (chunk.type != leaf.element.type) throw_damaged("its column '{}' has another type than its schema", leaf.path);
}

ColumnReader::~ColumnReader() { memory_.release(held_); }

void ColumnReader::throw_no_entry() const { throw_damaged("its column '{}' ends before others", leaf_.path); }

void ColumnReader::read_levels() {
  while (page_left_ == 0) read_page();
  --page_left_;
  --values_left_;
  repetition_ = leaf_.max_repetition > 0 ? static_cast<int>(repetitions_.next()) : 0;
  definition_ = leaf_.max_definition > 0 ? static_cast<int>(definitions_.next()) : 0;
  if (repetition_ > leaf_.max_repetition || definition_ > leaf_.max_definition) {
    throw_damaged("its column '{}' has impossible levels", leaf_.path);
  }
  has_entry_ = true;
}

std::string_view ColumnReader::take() {
  ready();
  if (!has_entry_) throw_no_entry();
  has_entry_ = false;
  repetition_ = 0;
  return definition_ == leaf_.max_definition ? values_->next() : std::string_view();
}

void ColumnReader::read_page() {
  if (at_ == end_) throw_damaged("its column '{}' has fewer values than it says", leaf_.path);
  const PageHeader header = read_header();
  switch (header.type) {
    case PageType::kIndex: at_ += static_cast<std::uint64_t>(header.packed_size); return;
    case PageType::kDictionary: return begin_dictionary(header, read_bytes(header));
    case PageType::kData:
    case PageType::kDataV2: return begin_data(header);
  }
}

// A head has some 30 bytes; more if it holds the least and the greatest text of its page.
PageHeader ColumnReader::read_header() {
  std::string bytes;
  for (std::uint64_t wanted = 256;; wanted *= 16) {
    const std::uint64_t there = std::min(wanted, end_ - at_);
    bytes.resize(there);
    file_.read(at_, std::as_writable_bytes(std::span(bytes)));
    try {
      std::size_t length = 0;
      const PageHeader header = parse_page_header(bytes, length);
      at_ += length;
      if (static_cast<std::uint64_t>(header.packed_size) > end_ - at_) {
        throw_damaged("a page of its column '{}' is longer than the column", leaf_.path);
      }
      return header;
    } catch (const ByteReader::Short&) {
      constexpr std::uint64_t kLongest = std::uint64_t{16} << 20;
      if (there < wanted || wanted >= kLongest) throw;
    }
  }
}

// Reads a page's stored bytes into the memory that columns share.
std::string_view ColumnReader::read_bytes(const PageHeader& header) {
  const auto size = static_cast<std::size_t>(header.packed_size);
  const std::span<char> packed = memory_.packed(size).first(size);
  file_.read(at_, std::as_writable_bytes(packed));
  at_ += size;
  if (header.checksum) {
    const auto found = static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(packed.data()), size));
    if (found != *header.checksum) throw_damaged("a page of its column '{}' has not its checksum", leaf_.path);
  }
  return {packed.data(), size};
}

void ColumnReader::hold(std::size_t before, std::size_t now) {
  memory_.count(before, now);
  held_ = held_ - before + now;
}

// Reuses the memory of the page before, unless it is too small or more than twice as large as needed.
void ColumnReader::make_room(std::vector<char>& page, std::size_t size) {
  const std::size_t before = page.capacity();
  if (size > before || size < before / 2) {
    hold(before, size);
    reserve_anew(page, size);
  }
  page.resize(size);
}

// Decompresses a page; levels of the second version come before the compressed bytes, and stay as they are.
void ColumnReader::unpack(const PageHeader& header, std::string_view stored, std::vector<char>& to) {
  const auto size = static_cast<std::size_t>(header.size);
  const auto levels = static_cast<std::size_t>(header.definition_size + header.repetition_size);
  const Codec codec = header.is_packed ? chunk_.codec : Codec::kNone;
  const std::string_view packed = stored.substr(levels);
  if (size - levels > most_decompressed(codec, packed.size())) {
    throw_damaged("a page of its column '{}' is to have {} bytes, and cannot", leaf_.path, size);
  }
  make_room(to, size);
  stored.copy(to.data(), levels);
  if (size > levels) decompress(codec, packed, std::span(to).subspan(levels));
}

void ColumnReader::begin_dictionary(const PageHeader& header, std::string_view stored) {
  if (has_dictionary_) throw_damaged("its column '{}' has two dictionaries", leaf_.path);
  if (header.encoding != Encoding::kPlain && header.encoding != Encoding::kPlainDictionary) {
    throw_unsupported("dictionaries in the encoding {}", static_cast<int>(header.encoding));
  }
  unpack(header, stored, dictionary_page_);
  dictionary_ = Dictionary({dictionary_page_.data(), dictionary_page_.size()}, header.values, leaf_.element);
  hold(0, dictionary_.bytes());
  has_dictionary_ = true;
}

void ColumnReader::begin_data(const PageHeader& header) {
  unpack(header, read_bytes(header), page_);
  if (header.values > values_left_) throw_damaged("its column '{}' has more values than it says", leaf_.path);
  page_left_ = header.values;
  ByteReader bytes(std::string_view(page_.data(), page_.size()));
  if (header.type == PageType::kDataV2) {
    repetitions_ = {bytes.take(static_cast<std::size_t>(header.repetition_size)), bits_of_level(leaf_.max_repetition)};
    definitions_ = {bytes.take(static_cast<std::size_t>(header.definition_size)), bits_of_level(leaf_.max_definition)};
  } else {
    repetitions_ = take_levels(bytes, header.repetition_encoding, leaf_.max_repetition);
    definitions_ = take_levels(bytes, header.definition_encoding, leaf_.max_definition);
  }
  const bool needs_dictionary =
      header.encoding == Encoding::kDictionary || header.encoding == Encoding::kPlainDictionary;
  if (needs_dictionary && !has_dictionary_) throw_damaged("its column '{}' lacks its dictionary", leaf_.path);
  values_ = make_page_values(header.encoding, bytes.rest(), leaf_.element, dictionary_);
}

}  // namespace teratron::parquet

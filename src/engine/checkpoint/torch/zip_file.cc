#include "checkpoint/torch/zip_file.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50, kLocatorSignature = 0x07064b50,
                        kDirectorySignature = 0x02014b50, kEntrySignature = 0x04034b50;
constexpr std::size_t kEndBytes = 22, kLocatorBytes = 20, kDirectoryBytes = 46, kEntryBytes = 30;
constexpr std::size_t kLongestComment = 0xffff;
constexpr std::uint32_t kIn64 = 0xffffffff;  // instead of a number that is in a field of ZIP64
constexpr std::uint16_t kEncrypted = 1, kStored = 0, kExtra64 = 1;

// Reads of an archive at the offsets that it names itself, with checks that they lie in the file.
class ZipBytes {
 public:
  ZipBytes(std::span<const std::byte> bytes, const std::filesystem::path& path) : bytes_(bytes), path_(path) {}

  std::span<const std::byte> at(std::uint64_t begin, std::uint64_t count) const {
    if (begin > bytes_.size() || count > bytes_.size() - begin) {
      fail("bytes {} to {} are named in it, and the file has {} in all, so it is cut short or damaged", begin,
           begin + count, bytes_.size());
    }
    return bytes_.subspan(begin, count);
  }
  template <class T>
  T number(std::uint64_t begin) const {
    T value;
    std::memcpy(&value, at(begin, sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t size() const { return bytes_.size(); }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw_user_error("'{}' is no zip archive that can be read: {}", path_.string(),
                     fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::span<const std::byte> bytes_;
  const std::filesystem::path& path_;
};

struct Directory {
  std::uint64_t begin = 0, bytes = 0, entries = 0;
};

// Place of the directory's end: the last place whose comment ends with the file.
std::uint64_t find_end(const ZipBytes& file) {
  if (file.size() >= kEndBytes) {
    const std::uint64_t last = file.size() - kEndBytes;
    for (std::uint64_t comment = 0; comment <= std::min<std::uint64_t>(last, kLongestComment); ++comment) {
      const std::uint64_t at = last - comment;
      if (file.number<std::uint32_t>(at) == kEndSignature && file.number<std::uint16_t>(at + 20) == comment) return at;
    }
  }
  file.fail("its directory, which comes last, is not there; the file is cut short, or of another kind");
}

Directory find_directory(const ZipBytes& file) {
  const std::uint64_t end = find_end(file);
  Directory directory{.begin = file.number<std::uint32_t>(end + 16),
                      .bytes = file.number<std::uint32_t>(end + 12),
                      .entries = file.number<std::uint16_t>(end + 10)};
  if (end >= kLocatorBytes && file.number<std::uint32_t>(end - kLocatorBytes) == kLocatorSignature) {
    const auto end64 = file.number<std::uint64_t>(end - kLocatorBytes + 8);
    if (file.number<std::uint32_t>(end64) != kEnd64Signature) file.fail("its ZIP64 directory has no end");
    directory = {.begin = file.number<std::uint64_t>(end64 + 48),
                 .bytes = file.number<std::uint64_t>(end64 + 40),
                 .entries = file.number<std::uint64_t>(end64 + 32)};
  }
  file.at(directory.begin, directory.bytes);
  return directory;
}

struct Listed {
  std::string name;
  std::uint64_t header = 0, bytes = 0, packed_bytes = 0;
  std::uint32_t crc = 0;
  std::uint64_t listed_bytes = 0;  // of this row of the directory
};

// Replaces the numbers that are in the extra field of ZIP64, which has them in this order and no others.
void take_64_bits(const ZipBytes& file, std::uint64_t begin, std::uint64_t bytes, Listed& entry) {
  const std::uint64_t end = begin + bytes;
  while (begin + 4 <= end) {
    const auto kind = file.number<std::uint16_t>(begin);
    const std::uint64_t next = begin + 4 + file.number<std::uint16_t>(begin + 2);
    if (next > end) break;
    begin += 4;
    if (kind == kExtra64) {
      for (std::uint64_t* const number : {&entry.bytes, &entry.packed_bytes, &entry.header}) {
        if (*number != kIn64) continue;
        if (begin + sizeof *number > next) file.fail("the size of '{}' is missing", entry.name);
        *number = file.number<std::uint64_t>(begin);
        begin += sizeof *number;
      }
      return;
    }
    begin = next;
  }
}

Listed read_row(const ZipBytes& file, std::uint64_t at) {
  if (file.number<std::uint32_t>(at) != kDirectorySignature) file.fail("its directory has no entry at byte {}", at);
  const auto flags = file.number<std::uint16_t>(at + 8), method = file.number<std::uint16_t>(at + 10);
  const auto name_bytes = file.number<std::uint16_t>(at + 28), extra_bytes = file.number<std::uint16_t>(at + 30),
             comment_bytes = file.number<std::uint16_t>(at + 32);
  const std::span<const std::byte> name = file.at(at + kDirectoryBytes, name_bytes);
  Listed entry{.name = std::string(reinterpret_cast<const char*>(name.data()), name.size()),
               .header = file.number<std::uint32_t>(at + 42),
               .bytes = file.number<std::uint32_t>(at + 24),
               .packed_bytes = file.number<std::uint32_t>(at + 20),
               .crc = file.number<std::uint32_t>(at + 16),
               .listed_bytes = kDirectoryBytes + std::uint64_t{name_bytes} + extra_bytes + comment_bytes};
  file.at(at, entry.listed_bytes);
  take_64_bits(file, at + kDirectoryBytes + name_bytes, extra_bytes, entry);
  if ((flags & kEncrypted) != 0 || method != kStored || entry.packed_bytes != entry.bytes) {
    file.fail("'{}' in it is compressed or encrypted, which torch.save never does", entry.name);
  }
  return entry;
}

ZipFile::Entry find_bytes(const ZipBytes& file, const Listed& entry) {
  if (file.number<std::uint32_t>(entry.header) != kEntrySignature) {
    file.fail("'{}' does not begin at byte {}, where its directory has it", entry.name, entry.header);
  }
  const std::uint64_t begin = entry.header + kEntryBytes + file.number<std::uint16_t>(entry.header + 26) +
                              file.number<std::uint16_t>(entry.header + 28);
  return {.bytes = file.at(begin, entry.bytes), .crc = entry.crc};
}

}  // namespace

ZipFile::ZipFile(MappedFile mapped) : file_(std::move(mapped)) {
  const ZipBytes file(file_.bytes(), file_.path());
  const Directory directory = find_directory(file);
  std::uint64_t at = directory.begin;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const Listed entry = read_row(file, at);
    at += entry.listed_bytes;
    if (!entries_.emplace(entry.name, find_bytes(file, entry)).second) file.fail("'{}' is in it twice", entry.name);
  }
}

const ZipFile::Entry* ZipFile::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

void ZipFile::require_intact(std::string_view name) const {
  const Entry* const entry = find(name);
  check(entry != nullptr, "an entry of the archive");
  const auto crc = ::crc32_z(0, reinterpret_cast<const unsigned char*>(entry->bytes.data()), entry->bytes.size());
  release(entry->bytes);
  if (crc == entry->crc) return;
  throw_user_error("'{}' is damaged: the bytes of '{}' in it are not those that were written; take another copy",
                   path().string(), name);
}

}  // namespace teratron

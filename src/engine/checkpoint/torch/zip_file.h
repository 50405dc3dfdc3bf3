// Zip archives whose entries are stored as they are, the only kind that torch.save writes (PKWARE's APPNOTE.TXT, 4.3
// and 4.5.3): the entries, each after a header of its own, a directory of them, and the directory's end. Sizes and
// places from 4 GB on are in fields of ZIP64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/files/file.h"

namespace teratron {

class ZipFile {
 public:
  struct Entry {
    std::span<const std::byte> bytes;
    std::uint32_t crc = 0;  // CRC-32 of the bytes as they were written
  };

  // UserError: missing, no zip archive, cut short, an entry that is compressed or encrypted or lies beyond the file,
  // two of one name.
  explicit ZipFile(const std::filesystem::path& path) : ZipFile(MappedFile(path)) {}
  explicit ZipFile(MappedFile mapped);

  const std::map<std::string, Entry, std::less<>>& entries() const { return entries_; }
  const Entry* find(std::string_view name) const;  // nullptr: there is none
  const std::filesystem::path& path() const { return file_.path(); }

  // UserError: the bytes of the entry, which must be there, are not those that were written.
  void require_intact(std::string_view name) const;
  // MappedFile::release() of a part of an entry.
  void release(std::span<const std::byte> bytes) const { file_.release(bytes); }

 private:
  MappedFile file_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace teratron

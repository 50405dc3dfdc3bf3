// Documents between two passes, in a temporary file. Without a name it is gone with the process, however that ends;
// with a name a later process can resume from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/checksum.h"
#include "corpus/stream/document.h"

namespace teratron {

// How far a spool with a name is written, for one that goes on with its file.
struct SpoolPoint {
  std::uint64_t bytes = 0;
  std::string checksum = {};  // of so many bytes; empty: of none
};

class Spool {
 public:
  // `files`: where the documents come from; they outlive the spool. Memory: 8 bytes a document. EnvironmentError, here
  // and below: it cannot be written (a full disk).
  struct Contents {
    std::string text_key;
    std::span<const std::filesystem::path> files;
  };
  // A file in `folder`, without a name.
  Spool(const std::filesystem::path& folder, Contents contents);
  // The file `path`, which an earlier spool kept up to `kept`. UserError: its bytes are others.
  Spool(const std::filesystem::path& path, const SpoolPoint& kept, Contents contents);
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();

  // Called by one thread. Returns the document's number, from 0.
  std::int64_t add(const Document& document);
  void end_writing();  // before the first read
  // Syncs a spool with a name to the disk, where it stays when the process ends.
  SpoolPoint keep();
  bool has_name() const { return !path_.empty(); }

  // Called by any number of threads. Sets `number` in the document. UserError: the file has changed.
  Document read(std::int64_t number) const;
  std::string origin(std::int64_t number) const;  // place_of() that document

  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  std::int64_t bytes_of(std::int64_t number) const { return ends_[index(number)] - begin_of(number); }
  std::span<const std::filesystem::path> files() const { return contents_.files; }

 private:
  static std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }
  std::int64_t begin_of(std::int64_t number) const { return number == 0 ? 0 : ends_[index(number) - 1]; }
  struct Header;
  Header header_at(std::int64_t begin) const;
  void take_kept(const SpoolPoint& kept);
  [[noreturn]] void throw_damaged() const;
  void flush();

  std::filesystem::path folder_;  // for messages
  std::filesystem::path path_;    // empty: no name
  Contents contents_;
  int descriptor_ = -1;
  bool is_kept_ = false;
  std::string buffer_;
  Checksum sum_;                    // of what is in the file
  std::vector<std::int64_t> ends_;  // offsets in the file
};

// Opens an unnamed file in `folder` (O_TMPFILE, or created and unlinked). EnvironmentError. The caller closes it.
int open_unnamed_file(const std::filesystem::path& folder);
// Writes all of `bytes`. EnvironmentError names the folder.
void write_unnamed(int descriptor, const std::filesystem::path& folder, std::string_view bytes);
// Reads as many bytes from offset `begin` as `to` takes. EnvironmentError.
void read_unnamed(int descriptor, const std::filesystem::path& folder, std::int64_t begin, std::span<char> to);

// The folder of temporary files for a result at `out`: beside it, or the system's folder if `out` is no file.
std::filesystem::path folder_for_temporaries(const std::filesystem::path& out);

}  // namespace teratron

// Documents on their way between two passes: a temporary file. It has no name, and is gone with the process, however
// that ends; or it has one, for a later process that goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corpus/stream/document.h"

namespace teratron {

class Spool {
 public:
  // Of documents that come from `files`, which outlive it; memory: 8 bytes a document. EnvironmentError, here and
  // below: it cannot be written (a full disk).
  struct Contents {
    std::string text_key;
    std::span<const std::filesystem::path> files;
  };
  // In `folder`, without a name.
  Spool(const std::filesystem::path& folder, Contents contents);
  // At `path`; goes on behind the first bytes of what an earlier one has kept there. UserError: they are damaged.
  Spool(const std::filesystem::path& path, std::uint64_t kept_bytes, Contents contents);
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();

  // Of one thread. Returns the document's number, from 0.
  std::int64_t add(const Document& document);
  void end_writing();  // before the first read
  // Of one with a name: what was added so far is on the disk, and stays there when the process ends.
  void keep();
  bool has_name() const { return !path_.empty(); }

  // From any number of threads. `number` is set in what is read.
  Document read(std::int64_t number) const;
  std::string origin(std::int64_t number) const;  // origin_of() that document

  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  std::int64_t bytes_of(std::int64_t number) const { return ends_[index(number)] - begin_of(number); }
  std::span<const std::filesystem::path> files() const { return contents_.files; }

 private:
  static std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }
  std::int64_t begin_of(std::int64_t number) const { return number == 0 ? 0 : ends_[index(number) - 1]; }
  struct Header;
  Header header_of(std::int64_t number) const;
  void find_ends(std::uint64_t bytes);
  void flush();

  std::filesystem::path folder_;  // for messages
  std::filesystem::path path_;    // empty: it has no name
  Contents contents_;
  int descriptor_ = -1;
  bool is_kept_ = false;
  std::string buffer_;
  std::vector<std::int64_t> ends_;  // of the documents, in the file
};

// An unnamed file in `folder` (O_TMPFILE, or created and unlinked). EnvironmentError. The caller closes it.
int open_unnamed_file(const std::filesystem::path& folder);
// All of `bytes`. EnvironmentError names the folder.
void write_unnamed(int descriptor, const std::filesystem::path& folder, std::string_view bytes);
// The bytes from `begin` on, as many as `to` takes. EnvironmentError.
void read_unnamed(int descriptor, const std::filesystem::path& folder, std::int64_t begin, std::span<char> to);

// Where temporary files for a result at `out` belong: beside it; the system's folder for them where that is no file.
std::filesystem::path folder_for_temporaries(const std::filesystem::path& out);

}  // namespace teratron

// Documents on their way between two passes: an unnamed temporary file, which is gone with the process, however it
// ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "corpus/document.h"

namespace teratron {

class Spool {
 public:
  // In `folder`; memory: 8 bytes a document. EnvironmentError, here and below: it cannot be written (a full disk).
  Spool(const std::filesystem::path& folder, std::string text_key);
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  ~Spool();

  // Of one thread. Returns the document's number, from 0.
  std::int64_t add(const Document& document);
  void end_writing();  // before the first read

  // From any number of threads. `number` is set in what is read.
  Document read(std::int64_t number) const;
  std::string origin(std::int64_t number) const;  // origin_of() that document

  std::int64_t size() const { return static_cast<std::int64_t>(ends_.size()); }
  std::int64_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  std::int64_t bytes_of(std::int64_t number) const { return ends_[index(number)] - begin_of(number); }
  const std::string& text_key() const { return text_key_; }

 private:
  static std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }
  std::int64_t begin_of(std::int64_t number) const { return number == 0 ? 0 : ends_[index(number) - 1]; }
  void flush();

  std::filesystem::path folder_;  // for messages
  std::string text_key_;
  int descriptor_ = -1;
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

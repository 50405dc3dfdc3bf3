#include "corpus/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace teratron {
namespace {

// What is written of a document before its line of JSON.
struct SpoolHeader {
  const std::filesystem::path* file;
  std::int64_t line;
  std::int64_t has_record;  // else a plain text, which is the rest
};
static_assert(std::is_trivially_copyable_v<SpoolHeader>);

constexpr std::size_t kSpoolBuffer = std::size_t{1} << 20;

[[noreturn]] void throw_spool_error(const std::filesystem::path& folder, const char* what) {
  throw_environment_error(
      "cannot {} a temporary file in '{}': {}; what passes between two passes needs as much room as "
      "the text",
      what, folder.string(), std::strerror(errno));
}

}  // namespace

int open_unnamed_file(const std::filesystem::path& folder) {
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0) return unnamed;
  std::string name = (folder / ".teratron-spool-XXXXXX").string();  // file systems without O_TMPFILE
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) throw_spool_error(folder, "create");
  ::unlink(name.c_str());
  return descriptor;
}

void write_unnamed(int descriptor, const std::filesystem::path& folder, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw_spool_error(folder, "write");
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void read_unnamed(int descriptor, const std::filesystem::path& folder, std::int64_t begin, std::span<char> to) {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor, to.data(), to.size(), begin);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw_spool_error(folder, "read");
    begin += got;
    to = to.subspan(static_cast<std::size_t>(got));
  }
}

std::filesystem::path folder_for_temporaries(const std::filesystem::path& out) {
  std::error_code error;
  if (is_standard_stream(out) || std::filesystem::is_other(out, error)) return std::filesystem::temp_directory_path();
  return out.has_parent_path() ? out.parent_path() : ".";
}

Spool::Spool(const std::filesystem::path& folder, std::string text_key)
    : folder_(folder), text_key_(std::move(text_key)), descriptor_(open_unnamed_file(folder)) {}

Spool::~Spool() { ::close(descriptor_); }

std::int64_t Spool::add(const Document& document) {
  const SpoolHeader header{document.file, document.line, document.record.empty() ? 0 : 1};
  const std::string line = header.has_record != 0 ? json_line_of(document, text_key_) : document.text;
  buffer_.append(reinterpret_cast<const char*>(&header), sizeof header);
  buffer_ += line;
  ends_.push_back(bytes() + static_cast<std::int64_t>(sizeof header + line.size()));
  if (buffer_.size() >= kSpoolBuffer) flush();
  return size() - 1;
}

void Spool::flush() {
  write_unnamed(descriptor_, folder_, buffer_);
  buffer_.clear();
}

void Spool::end_writing() {
  flush();
  buffer_.shrink_to_fit();
}

Document Spool::read(std::int64_t number) const {
  SpoolHeader header;
  read_unnamed(descriptor_, folder_, begin_of(number), {reinterpret_cast<char*>(&header), sizeof header});
  std::string content(static_cast<std::size_t>(bytes_of(number)) - sizeof header, '\0');
  read_unnamed(descriptor_, folder_, begin_of(number) + static_cast<std::int64_t>(sizeof header), content);
  Document document{.file = header.file, .line = header.line, .number = number};
  if (header.has_record == 0) {
    document.text = std::move(content);
    return document;
  }
  document.text = string_member(content, text_key_).value_or("");
  document.record = std::move(content);
  return document;
}

std::string Spool::origin(std::int64_t number) const {
  SpoolHeader header;
  read_unnamed(descriptor_, folder_, begin_of(number), {reinterpret_cast<char*>(&header), sizeof header});
  return origin_of({.file = header.file, .line = header.line});
}

}  // namespace teratron

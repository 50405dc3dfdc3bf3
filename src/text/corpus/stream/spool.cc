#include "corpus/stream/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "data/text/json_members.h"

namespace teratron {
namespace {

constexpr std::size_t kSpoolBuffer = std::size_t{1} << 20;

[[noreturn]] void throw_spool_error(const std::filesystem::path& folder, const char* what) {
  const int error = errno;
  const bool is_full = error == ENOSPC || error == EDQUOT;
  throw_environment_error("cannot {} a temporary file in '{}': {}; {}{}", what, folder.string(), std::strerror(error),
                          remedy_of_write_error(error),
                          is_full ? ": what passes between two passes needs as much room as the text" : "");
}

}  // namespace

// Written before a document's content.
struct Spool::Header {
  std::int64_t bytes;  // of the content
  std::int64_t file, line;
  std::int32_t unit;        // DocumentUnit
  std::int32_t has_record;  // the content is a line of JSON; otherwise plain text
};

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

Spool::Spool(const std::filesystem::path& folder, Contents contents)
    : folder_(folder), contents_(std::move(contents)), descriptor_(open_unnamed_file(folder)) {}

Spool::Spool(const std::filesystem::path& path, const SpoolPoint& kept, Contents contents)
    : folder_(folder_for_temporaries(path)), path_(path), contents_(std::move(contents)), is_kept_(kept.bytes > 0) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ < 0) throw_spool_error(folder_, "create");
  const auto size = static_cast<off_t>(kept.bytes);
  if (::ftruncate(descriptor_, size) != 0 || ::lseek(descriptor_, size, SEEK_SET) != size) {
    throw_spool_error(folder_, "write");
  }
  take_kept(kept);
}

Spool::~Spool() {
  ::close(descriptor_);
  if (has_name() && !is_kept_) ::unlink(path_.c_str());
}

void Spool::throw_damaged() const {
  throw_user_error("'{}' is damaged; run the same command again, which then starts over",
                   has_name() ? path_.string() : fmt::format("a temporary file in {}", folder_.string()));
}

// Goes through all bytes for their checksum, and then from head to head for where documents end.
void Spool::take_kept(const SpoolPoint& kept) {
  const auto whole = static_cast<std::int64_t>(kept.bytes);
  std::string piece;
  for (std::int64_t begin = 0; begin < whole; begin += std::ssize(piece)) {
    piece.resize(std::min(kSpoolBuffer, static_cast<std::size_t>(whole - begin)));
    read_unnamed(descriptor_, folder_, begin, piece);
    sum_.update(std::as_bytes(std::span(piece)));
  }
  if (whole > 0 && sum_.digest() != kept.checksum) throw_damaged();
  for (std::int64_t begin = 0; begin < whole;) {
    const Header header = header_at(begin);
    begin += std::int64_t{sizeof header} + header.bytes;
    ends_.push_back(begin);
  }
}

std::int64_t Spool::add(const Document& document) {
  const bool has_record = !document.record.empty();
  const std::string content = has_record ? json_line_of(document, contents_.text_key) : document.text;
  const Header header{.bytes = std::ssize(content),
                      .file = document.file - contents_.files.data(),
                      .line = document.line,
                      .unit = static_cast<std::int32_t>(document.unit),
                      .has_record = has_record ? 1 : 0};
  buffer_.append(reinterpret_cast<const char*>(&header), sizeof header);
  buffer_ += content;
  ends_.push_back(bytes() + static_cast<std::int64_t>(sizeof header + content.size()));
  if (buffer_.size() >= kSpoolBuffer) flush();
  return size() - 1;
}

void Spool::flush() {
  write_unnamed(descriptor_, folder_, buffer_);
  if (has_name()) sum_.update(std::as_bytes(std::span(buffer_)));
  buffer_.clear();
}

void Spool::end_writing() {
  flush();
  buffer_.shrink_to_fit();
}

SpoolPoint Spool::keep() {
  flush();
  if (::fsync(descriptor_) != 0) throw_spool_error(folder_, "write");
  is_kept_ = true;
  return {.bytes = static_cast<std::uint64_t>(bytes()), .checksum = sum_.digest()};
}

Spool::Header Spool::header_at(std::int64_t begin) const {
  Header header;
  read_unnamed(descriptor_, folder_, begin, {reinterpret_cast<char*>(&header), sizeof header});
  return header;
}

Document Spool::read(std::int64_t number) const {
  const Header header = header_at(begin_of(number));
  std::string content(static_cast<std::size_t>(header.bytes), '\0');
  read_unnamed(descriptor_, folder_, begin_of(number) + static_cast<std::int64_t>(sizeof header), content);
  Document document{.file = &contents_.files[index(header.file)],
                    .line = header.line,
                    .unit = static_cast<DocumentUnit>(header.unit),
                    .number = number};
  if (header.has_record == 0) {
    document.text = std::move(content);
    return document;
  }
  std::optional<std::string> text = string_member(content, contents_.text_key);
  if (!text) throw_damaged();
  document.text = *std::move(text);
  document.record = std::move(content);
  return document;
}

std::string Spool::origin(std::int64_t number) const {
  const Header header = header_at(begin_of(number));
  return place_of(contents_.files[index(header.file)], header.line, static_cast<DocumentUnit>(header.unit));
}

}  // namespace teratron

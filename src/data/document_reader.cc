#include "data/document_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"

namespace teratron {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void throw_unreadable(const std::filesystem::path& file, const char* cause) {
  throw_user_error("cannot read '{}': {}; check the path and its permissions", file.string(), cause);
}

// Less only at the end.
std::size_t read_all(FileReader& reader, std::span<char> to) {
  std::size_t used = 0;
  while (used < to.size()) {
    const std::size_t got = reader.read(to.subspan(used));
    if (got == 0) break;
    used += got;
  }
  return used;
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

DocumentReader::DocumentReader(std::vector<std::filesystem::path> files, std::int64_t batch_bytes)
    : files_(std::move(files)), batch_bytes_(batch_bytes) {
  if (files_.empty()) throw_user_error("no text files were given; name at least one");
  for (const auto& file : files_) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) throw_unreadable(file, "it is a folder, a file is needed");
    if (::access(file.c_str(), R_OK) != 0) throw_unreadable(file, std::strerror(errno));
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (!error) total_bytes_ += static_cast<std::int64_t>(size);
  }
}

bool DocumentReader::next(DocumentBatch& batch) {
  batch = {};
  // A file costs some memory however small it is.
  constexpr std::int64_t kBytesPerFile = 4096;
  std::int64_t size = 0;
  const auto nothing_yet = [&] { return batch.bytes_read == 0 && batch.documents.empty(); };
  while (file_ < files_.size() && (size < batch_bytes_ || nothing_yet())) {
    const std::int64_t before = batch.bytes_read;
    const auto& file = files_[file_];
    if (file.extension() == ".jsonl") {
      read_lines(batch);
    } else {
      std::string& text = batch.buffers.emplace_back(read_file(file));
      const std::size_t length = text.size();
      text.append(kPadding, '\0');
      batch.documents.push_back({.bytes = {text.data(), length}, .file = &file});
      batch.bytes_read += static_cast<std::int64_t>(length);
      ++file_;
    }
    size += batch.bytes_read - before + kBytesPerFile;
  }
  return !nothing_yet();
}

// Reads whole lines of the current file, about a batch of them.
void DocumentReader::read_lines(DocumentBatch& batch) {
  const auto& file = files_[file_];
  if (!lines_) {
    lines_.emplace(file);
    line_ = 0;
  }
  std::string& block = batch.buffers.emplace_back(std::exchange(carry_, {}));
  std::size_t whole = std::string::npos;  // where the block's last whole line ends
  bool is_end = false;
  while (whole == std::string::npos) {
    const std::size_t used = block.size();
    block.resize(used + static_cast<std::size_t>(batch_bytes_));
    const std::size_t got = read_all(*lines_, std::span(block).subspan(used));
    is_end = got < block.size() - used;
    block.resize(used + got);
    batch.bytes_read += static_cast<std::int64_t>(got);
    if (is_end) {
      whole = block.size();
    } else if (const std::size_t newline = std::string_view(block).substr(used).rfind('\n');
               newline != std::string_view::npos) {
      whole = used + newline + 1;
    }
  }
  if (is_end) {
    lines_.reset();
    ++file_;
  }
  carry_ = block.substr(whole);
  block.resize(whole);
  block.append(kPadding, '\0');
  add_lines(batch, block);
}

void DocumentReader::add_lines(DocumentBatch& batch, const std::string& block) {
  const std::filesystem::path& file = files_[lines_ ? file_ : file_ - 1];
  std::string_view rest(block.data(), block.size() - kPadding);
  if (line_ == 0 && rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    ++line_;
    if (!is_blank(line)) batch.documents.push_back({.bytes = line, .file = &file, .line = line_});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace teratron

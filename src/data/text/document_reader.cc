#include "data/text/document_reader.h"

#include <simdjson.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Where standard input is JSON lines, its first line is not longer than this.
constexpr std::size_t kLongestFirstLine = std::size_t{64} << 20;

// Less only at the end.
std::size_t read_all(DecompressingReader& reader, std::span<char> to) {
  std::size_t used = 0;
  while (used < to.size()) {
    const std::size_t got = reader.read(to.subspan(used));
    if (got == 0) break;
    used += got;
  }
  return used;
}

}  // namespace

DocumentReader::DocumentReader(std::span<const std::filesystem::path> named, std::int64_t batch_bytes,
                               TextFormat format)
    : files_(find_input_files(named)), batch_bytes_(batch_bytes), format_(format) {
  for (const auto& file : files_) {
    if (is_standard_stream(file)) continue;
    if (::access(file.c_str(), R_OK) != 0) {
      throw_user_error("cannot read '{}': {}; check the path and its permissions", file.string(), std::strerror(errno));
    }
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(file, error);
    if (!error) total_bytes_ += static_cast<std::int64_t>(size);
  }
}

std::int64_t DocumentReader::skip_to(const InputPosition& position) {
  check(file_ == 0 && !reader_ && std::cmp_less_equal(position.file, files_.size()), "skip_to: the position");
  std::int64_t bytes = 0;
  for (; std::cmp_less(file_, position.file); ++file_) {
    std::error_code none;
    if (const std::uintmax_t size = std::filesystem::file_size(files_[file_], none); !none) {
      bytes += static_cast<std::int64_t>(size);
    }
  }
  skipped_ = position.line;
  return bytes;
}

bool DocumentReader::next(DocumentBatch& batch) {
  batch = {};
  // A file costs some memory however small it is.
  constexpr std::int64_t kBytesPerFile = 4096;
  std::int64_t size = 0;
  const auto nothing_yet = [&] { return batch.bytes_read == 0 && batch.documents.empty(); };
  while (file_ < files_.size() && (size < batch_bytes_ || nothing_yet())) {
    const std::int64_t taken = reader_ ? reader_->bytes_taken() : 0;
    if (!reader_) open();
    if (has_lines_) {
      read_lines(batch);
    } else {
      read_text(batch);
    }
    size += std::ssize(batch.buffers.back()) + kBytesPerFile;
    batch.bytes_read += reader_->bytes_taken() - taken;
    if (is_at_end_) close();
  }
  return !nothing_yet();
}

void DocumentReader::open() {
  reader_.emplace(files_[file_]);
  line_ = offset_ = 0;
  is_at_end_ = false;
  carry_.clear();
  has_lines_ = holds_lines();
}

void DocumentReader::close() {
  reader_.reset();
  ++file_;
  line_ = skipped_ = 0;
}

bool DocumentReader::holds_lines() {
  if (format_ != TextFormat::kByName) return format_ == TextFormat::kJsonLines;
  const auto& file = files_[file_];
  return is_standard_stream(file) ? first_line_is_object() : is_named_json_lines(file);
}

// Reads as much as it takes to tell, into carry_.
bool DocumentReader::first_line_is_object() {
  constexpr std::size_t kPiece = std::size_t{64} << 10;
  std::size_t begin = std::string::npos, end = std::string::npos;  // of the line
  bool has_more = true;
  while (has_more && end == std::string::npos && carry_.size() < kLongestFirstLine) {
    const std::size_t used = carry_.size();
    carry_.resize(used + kPiece);
    const std::size_t got = read(std::span(carry_).subspan(used));
    carry_.resize(used + got);
    has_more = got == kPiece;
    const std::size_t mark = carry_.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    begin = carry_.find_first_not_of(" \t\r\n", mark);
    if (begin == std::string::npos) continue;
    if (carry_[begin] != '{') return false;
    end = carry_.find('\n', std::max(begin, used));
  }
  if (begin == std::string::npos) return false;
  if (end == std::string::npos && !has_more) end = carry_.size();
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const bool is_object =
      end != std::string::npos && parser.parse(carry_.data() + begin, end - begin).get(object) == simdjson::SUCCESS;
  if (is_object) return true;
  throw_user_error(
      "standard input begins with '{{' as JSON lines do, but its first line is not a JSON object; say what it is with "
      "--format jsonl or --format text");
}

// The next bytes of the file's text, less only at its end.
std::size_t DocumentReader::read(std::span<char> to) {
  const std::size_t got = read_all(*reader_, to);
  require_text({to.data(), got}, offset_, files_[file_]);
  offset_ += static_cast<std::int64_t>(got);
  return got;
}

// The whole file as one document.
void DocumentReader::read_text(DocumentBatch& batch) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string& text = batch.buffers.emplace_back(std::exchange(carry_, {}));
  while (!is_at_end_) {
    const std::size_t used = text.size(), wanted = std::max(kPiece, used / 2);
    text.resize(used + wanted);
    const std::size_t got = read(std::span(text).subspan(used));
    text.resize(used + got);
    is_at_end_ = got < wanted;
  }
  const std::size_t length = text.size();
  text.append(kPadding, '\0');
  batch.documents.push_back({.bytes = {text.data(), length}, .file = &files_[file_]});
}

// Reads whole lines of the file, about a batch of them.
void DocumentReader::read_lines(DocumentBatch& batch) {
  std::string& block = batch.buffers.emplace_back(std::exchange(carry_, {}));
  std::size_t whole = std::string::npos;  // where the block's last whole line ends
  while (whole == std::string::npos) {
    const std::size_t used = block.size();
    block.resize(used + static_cast<std::size_t>(batch_bytes_));
    const std::size_t got = read(std::span(block).subspan(used));
    is_at_end_ = got < block.size() - used;
    block.resize(used + got);
    if (is_at_end_) {
      whole = block.size();
    } else if (const std::size_t newline = std::string_view(block).substr(used).rfind('\n');
               newline != std::string_view::npos) {
      whole = used + newline + 1;
    }
  }
  carry_ = block.substr(whole);
  block.resize(whole);
  block.append(kPadding, '\0');
  add_lines(batch, block);
}

void DocumentReader::add_lines(DocumentBatch& batch, const std::string& block) {
  const std::filesystem::path& file = files_[file_];
  std::string_view rest(block.data(), block.size() - kPadding);
  if (line_ == 0 && rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    ++line_;
    if (line_ > skipped_ && !is_blank(line)) batch.documents.push_back({.bytes = line, .file = &file, .line = line_});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace teratron

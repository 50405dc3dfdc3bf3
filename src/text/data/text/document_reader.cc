#include "data/text/document_reader.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "data/text/input_files.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;  // of plain text per read

// Reads `size` bytes; fewer only at the end.
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

std::string_view name_of(DocumentUnit unit) {
  return unit == DocumentUnit::kLine ? "line" : unit == DocumentUnit::kElement ? "element" : "row";
}

std::string place_of(const std::filesystem::path& file, std::int64_t line, DocumentUnit unit) {
  const std::string name = is_standard_stream(file) ? "standard input" : file.string();
  if (line == 0) return name;
  if (unit == DocumentUnit::kLine) return fmt::format("{}:{}", name, line);
  return fmt::format("{}, {} {}", name, name_of(unit), line);
}

DocumentReader::DocumentReader(std::span<const std::filesystem::path> named, std::int64_t batch_bytes,
                               TextFormat format, std::size_t most_unpacked)
    : files_(find_input_files(named)),
      batch_bytes_(batch_bytes),
      total_bytes_(bytes_of_inputs(files_)),
      format_(format),
      most_unpacked_(most_unpacked) {}

std::int64_t DocumentReader::skip_to(const InputPosition& position) {
  check(file_ == 0 && !reader_ && std::cmp_less_equal(position.file, files_.size()), "skip_to: the position");
  std::int64_t bytes = 0;
  for (; std::cmp_less(file_, position.file); ++file_) bytes += bytes_of_input(files_[file_]);
  skipped_ = position.line;
  return bytes;
}

bool DocumentReader::next(DocumentBatch& batch) {
  batch = {};
  // Counts some memory for each file, however small.
  constexpr std::int64_t kBytesPerFile = 4096;
  std::int64_t size = 0;
  const auto nothing_yet = [&] { return batch.bytes_read == 0 && batch.documents.empty(); };
  while (file_ < files_.size() && (size < batch_bytes_ || nothing_yet())) {
    const std::int64_t taken = reader_ ? bytes_taken() : 0;
    if (!reader_) open();
    switch (kind_) {
      case ContentKind::kJsonLines: read_lines(batch); break;
      case ContentKind::kJsonArray: read_elements(batch); break;
      case ContentKind::kParquet: read_rows(batch); break;
      default: read_text(batch);
    }
    size += std::ssize(batch.buffers.back()) + kBytesPerFile;
    batch.bytes_read += bytes_taken() - taken;
    if (is_at_end_) close();
  }
  return !nothing_yet();
}

void DocumentReader::open() {
  reader_.emplace(files_[file_]);
  line_ = offset_ = 0;
  is_at_end_ = false;
  carry_.clear();
  elements_ = {};
  kind_ = recognise();
  if (kind_ == ContentKind::kParquet) open_table();
}

std::int64_t DocumentReader::bytes_taken() const { return rows_ ? rows_->bytes_taken() : reader_->bytes_taken(); }

ContentKind DocumentReader::recognise() {
  if (format_ == TextFormat::kText) return ContentKind::kText;
  const std::filesystem::path& file = files_[file_];
  const std::string_view head = reader_->peek(kContentHead);
  Content content = recognise_content(head, file);
  if (takes_text_alone_) content.is_unclear = false;
  if (format_ == TextFormat::kJsonLines) {
    require_lines(content, head);
    return ContentKind::kJsonLines;
  }
  if (takes_lists_ && content.may_be_list) return ContentKind::kText;
  require_readable(content, file, format_flag_);
  constexpr int kMostSurprises = 3;
  if (const std::string line = surprise_of(content, file, format_flag_);
      tells_ && !line.empty() && ++surprises_ <= kMostSurprises) {
    std::fputs(
        fmt::format("note: {}{}\n", line, surprises_ == kMostSurprises ? "; further files are not listed" : "").c_str(),
        stderr);
  }
  return content.kind;
}

// The user's --format jsonl counts unless the file begins otherwise: a fault is then reported with its line.
void DocumentReader::require_lines(const Content& content, std::string_view head) const {
  const std::string name = name_of_input(files_[file_]);
  if (content.kind == ContentKind::kJsonArray || content.kind == ContentKind::kParquet) {
    throw_user_error("{} holds a {}, not an object a line; leave {} out, and it is read as what it is", name,
                     content.kind == ContentKind::kParquet ? "Parquet table" : "JSON array", format_flag_);
  }
  const std::string_view line = head.substr(0, head.find('\n'));
  if (content.kind != ContentKind::kOther || content.is_unclear || is_json(line)) return;
  require_readable(content, files_[file_], format_flag_);
}

void DocumentReader::close() {
  rows_.reset();
  reader_.reset();
  ++file_;
  line_ = skipped_ = 0;
}

// Reads the next bytes of the file's text; fewer only at its end.
std::size_t DocumentReader::read(std::span<char> to) {
  const std::size_t got = read_all(*reader_, to);
  require_text({to.data(), got}, offset_, files_[file_]);
  offset_ += static_cast<std::int64_t>(got);
  return got;
}

// Reads the whole file as one document.
void DocumentReader::read_text(DocumentBatch& batch) {
  std::string& text = batch.buffers.emplace_back(std::exchange(carry_, {}));
  while (!is_at_end_) {
    const std::size_t used = text.size(), wanted = std::max(kPiece, used / 2);
    text.resize(used + wanted);
    const std::size_t got = read(std::span(text).subspan(used));
    text.resize(used + got);
    is_at_end_ = got < wanted;
    require_size(text.size());
  }
  const std::size_t length = text.size();
  text.append(kPadding, '\0');
  batch.documents.push_back({.bytes = without_byte_order_mark({text.data(), length}),
                             .file = &files_[file_],
                             .any_bytes = format_ == TextFormat::kText});
}

void DocumentReader::require_size(std::size_t bytes) const {
  if (!reader_->is_compressed() || bytes <= most_unpacked_) return;
  const std::string name = name_of_input(files_[file_]);
  require_unpacked_size(bytes, most_unpacked_,
                        kind_ == ContentKind::kText ? name : fmt::format("document {} of {}", line_ + 1, name));
}

// Reads whole lines of the file, about a batch of them.
void DocumentReader::read_lines(DocumentBatch& batch) {
  std::string& block = batch.buffers.emplace_back(std::exchange(carry_, {}));
  std::size_t whole = std::string::npos;  // end of the block's last whole line
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
    } else {
      require_size(block.size());
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
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    // Joined files may each begin with a byte order mark.
    while (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    ++line_;
    if (line_ > skipped_ && !is_blank(line)) batch.documents.push_back({.bytes = line, .file = &file, .line = line_});
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

// Reads whole elements of the file's array, about a batch of them.
void DocumentReader::read_elements(DocumentBatch& batch) {
  std::string& block = batch.buffers.emplace_back(std::exchange(carry_, {}));
  std::vector<std::pair<std::size_t, std::size_t>> places;
  std::size_t rest = 0;
  while (places.empty() && !is_at_end_) {
    const std::size_t used = block.size();
    block.resize(used + static_cast<std::size_t>(batch_bytes_));
    const std::size_t got = read(std::span(block).subspan(used));
    is_at_end_ = got < block.size() - used;
    block.resize(used + got);
    block.erase(0, rest);
    rest = cut_elements(block, places);
    require_size(block.size() - rest);
  }
  if (is_at_end_ && !elements_.may_end()) {
    throw_user_error("{} is cut short: its JSON array does not end, after element {}; copy or make it again",
                     name_of_input(files_[file_]), line_ + std::ssize(places));
  }
  carry_ = block.substr(rest);
  block.append(kPadding, '\0');
  for (const auto& [begin, end] : places) {
    if (++line_ <= skipped_) continue;
    batch.documents.push_back({.bytes = std::string_view(block).substr(begin, end - begin),
                               .file = &files_[file_],
                               .line = line_,
                               .unit = DocumentUnit::kElement});
  }
}

// Returns the offset of the rest.
std::size_t DocumentReader::cut_elements(std::string& block, std::vector<std::pair<std::size_t, std::size_t>>& places) {
  constexpr std::string_view kSpaces = " \t\r\n";
  try {
    return elements_.scan(block, is_at_end_, [&](std::size_t begin, std::size_t end) {
      while (begin < end && kSpaces.find(block[begin]) != kSpaces.npos) ++begin;
      while (begin < end && kSpaces.find(block[end - 1]) != kSpaces.npos) --end;
      places.emplace_back(begin, end);
    });
  } catch (const UserError& error) {
    throw_user_error("{}: {}", name_of_input(files_[file_]), error.what());
  }
}

// The table of contents of a Parquet file is at its end.
void DocumentReader::open_table() {
  const std::filesystem::path& file = files_[file_];
  if (reader_->is_compressed()) {
    throw_user_error("{} is a Parquet file that is compressed once more; decompress it with gzip -d or zstd -d",
                     name_of_input(file));
  }
  if (is_standard_stream(file) || !std::filesystem::is_regular_file(file)) {
    throw_user_error("{} gives a Parquet file, which is read from its end on; name the file in the place of the pipe",
                     name_of_input(file));
  }
  rows_.emplace(file, columns_, most_unpacked_);
  rows_->take_texts(text_columns_);
  is_base64_ = !bytes_column_.empty() && rows_->take_bytes(bytes_column_);
  rows_->skip(skipped_);
  line_ = std::min(skipped_, rows_->rows());
}

// Reads about a batch of rows.
void DocumentReader::read_rows(DocumentBatch& batch) {
  std::string& block = batch.buffers.emplace_back();
  std::vector<std::size_t> ends;
  while (std::cmp_less(block.size(), batch_bytes_) && !is_at_end_) {
    is_at_end_ = !rows_->next(block);
    if (!is_at_end_) ends.push_back(block.size());
  }
  block.append(kPadding, '\0');
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    batch.documents.push_back({.bytes = std::string_view(block).substr(begin, end - begin),
                               .file = &files_[file_],
                               .line = ++line_,
                               .unit = DocumentUnit::kRow,
                               .is_base64 = is_base64_});
    begin = end;
  }
}

}  // namespace teratron

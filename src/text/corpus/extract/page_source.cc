#include "corpus/extract/page_source.h"

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/decompression.h"
#include "base/files/file.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "corpus/extract/charset.h"
#include "corpus/extract/header_lines.h"
#include "corpus/extract/http_response.h"
#include "corpus/extract/warc_reader.h"
#include "data/text/content.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;
using Files = std::span<const fs::path>;

// Whether a file begins like mail or MHTML: with a mailbox's separator, or with header fields of which one is used by
// mail only.
bool is_mail(const fs::path& file) {
  constexpr std::size_t kLooked = std::size_t{16} << 10;
  DecompressingReader reader(file);
  const std::string_view head = reader.peek(kLooked);
  HeaderLines lines(head);
  std::optional<std::string_view> line = lines.next();
  const bool is_mailbox = line && line->starts_with("From ") && !line->ends_with('.');
  if (is_mailbox) line = lines.next();
  bool has_field_of_mail = false;
  for (; line && !line->empty(); line = lines.next()) {
    if (line->front() == ' ' || line->front() == '\t') continue;  // continues the field before
    const std::string name = ascii_lower(line->substr(0, line->find(':')));
    const bool is_name = !name.empty() && name.size() < line->size() && name.find_first_of(" \t<>\"") == name.npos;
    if (!is_name) return false;
    has_field_of_mail = has_field_of_mail || name == "mime-version" || name == "message-id" || name == "received" ||
                        name == "return-path" || name == "delivered-to" || (is_mailbox && name == "from") ||
                        name == "subject";
  }
  return has_field_of_mail;
}

// Adds a header field before the server's own.
void add_seen_type(std::string_view type, std::string& response) {
  const std::size_t status_end = response.find('\n');
  if (type.empty() || status_end == response.npos) return;
  response.insert(status_end + 1, fmt::format("{}: {}\r\n", kSeenTypeField, type));
}

// Reads WARC files and pages one after another, a batch ahead in a thread of its own.
class FilesOfPages final : public DocumentSource {
 public:
  // `passed_over`: records of the first file to skip without counting.
  FilesOfPages(Files files, TextFormat format, const PageSourceOptions& options, std::int64_t passed_over,
               std::shared_ptr<RecordCounts> counts)
      : files_(files),
        format_(format),
        options_(options),
        passed_over_(passed_over),
        counts_(std::move(counts)),
        total_(bytes_of_inputs(files)) {
    read_ahead();
  }

  bool next(Batch& batch) override {
    Ahead read = ahead_.get();
    batch = std::move(read.batch);
    taken_ = read.bytes_taken;
    for (const auto& [type, count] : read.records) (*counts_)[type] += count;
    if (read.is_end) return false;
    read_ahead();
    return true;
  }

  double share() const override { return total_ == 0 ? 0 : static_cast<double>(taken_) / static_cast<double>(total_); }
  Files files() const override { return files_; }

 private:
  struct Ahead {
    Batch batch;
    RecordCounts records;
    std::int64_t bytes_taken = 0;  // of all files so far
    bool is_end = false;
  };

  void read_ahead() {
    ahead_ = std::async(std::launch::async, [this] { return read(); });
  }

  Ahead read() {
    constexpr std::int64_t kBytesPerPage = 4096;  // charged for each page, however small
    Ahead ahead;
    std::int64_t size = 0;
    std::int64_t passed = 0;  // records that are no pages end batches too, so that progress is shown
    while (file_ < files_.size() && size < options_.batch_bytes && passed < options_.batch_bytes) {
      const std::size_t before = ahead.batch.documents.size();
      if (!reader_) reader_.emplace(files_[file_]), is_warc_ = begins_warc();
      const bool is_done = is_warc_ ? !read_record(ahead, passed) : read_page(ahead);
      if (ahead.batch.documents.size() > before) size += std::ssize(ahead.batch.documents.back().text) + kBytesPerPage;
      ahead.bytes_taken = taken_before_ + reader_->bytes_taken();
      if (!is_done) continue;
      taken_before_ += reader_->bytes_taken();
      reader_.reset();
      ++file_;
      records_ = passed_over_ = 0;
    }
    ahead.batch.end = {.file = static_cast<std::int64_t>(file_), .line = std::max(records_, passed_over_)};
    ahead.is_end = file_ == files_.size() && size == 0 && passed == 0;
    return ahead;
  }

  bool begins_warc() {
    if (format_ == TextFormat::kText) return false;
    // A file named .warc that is none is an error of the reader.
    const std::string name = files_[file_].filename().string();
    const bool is_named_warc = name.ends_with(".warc") || name.ends_with(".warc.gz") || name.ends_with(".warc.zst");
    if (reader_->is_warc() || is_named_warc) return true;
    // A pipe cannot be inspected and then read from its beginning.
    if (!fs::is_regular_file(files_[file_]) && (reader_->begins_with('{') || reader_->begins_with('['))) {
      throw_user_error("{} begins as JSON does; say so with --format jsonl, or name a file",
                       name_of_input(files_[file_]));
    }
    return false;
  }

  // Returns false when the file ends.
  bool read_record(Ahead& ahead, std::int64_t& passed) {
    WarcRecord record;
    if (!reader_->next(record)) return false;
    records_ = record.number;
    if (records_ <= passed_over_) {
      passed += 1 + record.length;
      return true;
    }
    const bool is_response = record.type == "response" && record.content_type.starts_with("application/http");
    ++ahead
          .records[record.type == "response" && !is_response ? "response without http" : to_utf8(record.type, "utf-8")];
    if (!is_response) {
      passed += 1 + record.length;
      return true;
    }
    std::string response = reader_->read(kLongestHttpHead);
    add_seen_type(record.seen_type, response);
    const std::optional<HttpHead> head = parse_http_head(response);
    if (head && head->is_page()) {
      response +=
          reader_->read(options_.most_page_bytes + 1 - (std::ssize(response) - static_cast<std::int64_t>(head->bytes)));
    } else if (head) {
      response.resize(head->bytes);
    }
    std::string about = "{\"url\": ";
    append_json_string(to_utf8(record.url, "utf-8"), about);
    if (!record.date.empty()) {
      about += ", \"date\": ";
      append_json_string(to_utf8(record.date, "utf-8"), about);
    }
    ahead.batch.documents.push_back(
        {.text = std::move(response), .record = about + "}", .file = &files_[file_], .line = record.number});
    return true;
  }

  bool read_page(Ahead& ahead) {
    const std::string page = reader_->read_plain(options_.most_page_bytes + 1);
    ahead.batch.documents.push_back(
        {.text = as_http_response(page, /*is_utf8=*/false), .record = "{}", .file = &files_[file_]});
    return true;  // the file ends
  }

  Files files_;
  TextFormat format_;
  PageSourceOptions options_;
  std::int64_t passed_over_;  // records to skip in the current file
  std::shared_ptr<RecordCounts> counts_;
  std::int64_t total_, taken_ = 0, taken_before_ = 0;
  std::size_t file_ = 0;              // the current one
  std::int64_t records_ = 0;          // read in it so far
  std::optional<WarcReader> reader_;  // while it is open
  bool is_warc_ = false;
  std::future<Ahead> ahead_;  // declared last: destroyed before what it reads
};

// Runs of files that one kind of source reads.
class PageSource final : public DocumentSource {
 public:
  PageSource(std::vector<fs::path> files, TextFormat format, PageSourceOptions options, const InputPosition& from,
             std::shared_ptr<RecordCounts> counts)
      : files_(std::move(files)),
        format_(format),
        options_(std::move(options)),
        passed_over_(from.line),
        counts_(std::move(counts)),
        total_(bytes_of_inputs(files_)) {
    check(from.file >= 0 && from.file <= std::ssize(files_), "open_pages: the position");
    for (; std::cmp_less(begin_, from.file); ++begin_) done_ += bytes_of_input(files_[begin_]);
  }

  bool next(Batch& batch) override {
    while (true) {
      if (!current_ && begin_ == files_.size()) return false;
      if (!current_) open_run();
      if (!current_->next(batch)) {
        current_.reset();
        for (; begin_ < end_; ++begin_) done_ += bytes_of_input(files_[begin_]);
        continue;
      }
      if (is_lines_) make_responses(batch);
      batch.end.file += static_cast<std::int64_t>(begin_);
      return true;
    }
  }

  double share() const override {
    if (total_ == 0) return 0;
    std::int64_t bytes = 0;
    for (std::size_t i = begin_; current_ && i < end_; ++i) bytes += bytes_of_input(files_[i]);
    const double within = current_ ? current_->share() * static_cast<double>(bytes) : 0;
    return std::min(1.0, (static_cast<double>(done_) + within) / static_cast<double>(total_));
  }
  Files files() const override { return files_; }

 private:
  bool has_lines(const fs::path& file) const {
    if (format_ != TextFormat::kAuto) return format_ == TextFormat::kJsonLines;
    if (!fs::is_regular_file(file)) return is_named_json_lines(file);
    const Content content = content_of_file(file);
    if (!content.may_be_page) require_readable(content, file);
    if (is_mail(file)) {
      throw_user_error(
          "{} seems to be mail or MHTML: save the page as HTML, or take the parts out, for example with "
          "munpack; or leave it out",
          name_of_input(file));
    }
    return content.kind != ContentKind::kText && content.kind != ContentKind::kOther;
  }

  void open_run() {
    is_lines_ = has_lines(files_[begin_]);
    end_ = begin_ + 1;
    if (is_lines_) {  // one by one: readers keep references to the names
      current_ = std::make_unique<FileSource>(
          Files(files_).subspan(begin_, 1), format_, options_.html_key, options_.batch_bytes,
          InputPosition{.line = std::exchange(passed_over_, 0)}, KeyHolds::kAnyBytes);
      return;
    }
    while (end_ < files_.size() && !has_lines(files_[end_])) ++end_;
    current_ = std::make_unique<FilesOfPages>(Files(files_).subspan(begin_, end_ - begin_), format_, options_,
                                              std::exchange(passed_over_, 0), counts_);
  }

  void make_responses(Batch& batch) const {
    for (Document& document : batch.documents) {
      document.text = as_http_response(document.text, is_utf8(document.text));
      document.file = &files_[begin_];
    }
    for (BadDocument& bad : batch.bad) bad.file = &files_[begin_];
  }

  std::vector<fs::path> files_;
  TextFormat format_;
  PageSourceOptions options_;
  std::int64_t passed_over_;  // lines or records to skip in the first file
  std::shared_ptr<RecordCounts> counts_;
  std::int64_t total_, done_ = 0;
  std::size_t begin_ = 0, end_ = 0;  // the run of files of current_
  bool is_lines_ = false;
  std::unique_ptr<DocumentSource> current_;  // declared last: destroyed before the names
};

}  // namespace

std::unique_ptr<DocumentSource> open_pages(std::vector<fs::path> files, TextFormat format,
                                           const PageSourceOptions& options, const InputPosition& from,
                                           std::shared_ptr<RecordCounts> counts) {
  return std::make_unique<PageSource>(std::move(files), format, options, from, std::move(counts));
}

std::vector<fs::path> find_page_files(Files named) {
  constexpr auto kEndings = std::to_array<std::string_view>({".html", ".htm", ".xhtml", ".warc", ".jsonl", ".parquet"});
  return find_input_files(named, kEndings);
}

}  // namespace teratron

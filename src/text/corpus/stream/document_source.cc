#include "corpus/stream/document_source.h"

#include <utility>

#include "base/error.h"
#include "base/host/threads.h"
#include "data/text/input_files.h"

namespace teratron {
namespace {

constexpr std::int64_t kDocumentsPerParse = 8;

}  // namespace

FileSource::FileSource(std::span<const std::filesystem::path> files, TextFormat format, std::string text_key,
                       std::int64_t batch_bytes, const InputPosition& from, KeyHolds holds)
    : reader_(files, batch_bytes, format),
      key_{.names = {std::move(text_key)}, .may_hold_nul = holds == KeyHolds::kAnyBytes},
      bytes_read_(reader_.skip_to(from)) {
  if (holds == KeyHolds::kTexts) reader_.take_texts(key_.names);
  if (holds == KeyHolds::kAnyBytes) reader_.take_bytes(key_.names.front());
  read_ahead();
}

FileSource::~FileSource() = default;

void FileSource::read_ahead() {
  ahead_ = std::async(std::launch::async, [this] {
    RawBatch raw;
    raw.is_end = !reader_.next(raw.batch);
    raw.end = reader_.position();
    return raw;
  });
}

bool FileSource::next(Batch& batch) {
  batch = {};
  const RawBatch raw = ahead_.get();
  if (raw.is_end) return false;
  read_ahead();
  bytes_read_ += raw.batch.bytes_read;
  batch.end = raw.end;
  const std::vector<RawDocument>& lines = raw.batch.documents;
  std::vector<Document> documents(lines.size());
  std::vector<std::string> faults(lines.size());
  parallel_for(std::ssize(lines), kDocumentsPerParse, [&](std::int64_t begin, std::int64_t end) {
    DocumentText text_of(key_);
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      try {
        documents[i] = make_document(lines[i], text_of);
      } catch (const UserError& error) {
        faults[i] = error.what();
      }
    }
  });
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (faults[i].empty()) {
      if (lines[i].line == 0 && is_blank(documents[i].text)) continue;  // a file without text
      batch.documents.push_back(std::move(documents[i]));
    } else {
      batch.bad.push_back({.file = lines[i].file, .line = lines[i].line, .fault = std::move(faults[i])});
    }
  }
  return true;
}

double FileSource::share() const {
  // The total does not include pipes.
  const std::int64_t total = reader_.total_bytes();
  return bytes_read_ > total || total == 0 ? 0 : static_cast<double>(bytes_read_) / static_cast<double>(total);
}

bool SpoolSource::next(Batch& batch) {
  batch = {};
  const std::int64_t first = next_;
  for (std::int64_t bytes = 0; next_ < spool_.size() && bytes < batch_bytes_; ++next_) bytes += spool_.bytes_of(next_);
  if (next_ == first) return false;
  batch.documents.resize(static_cast<std::size_t>(next_ - first));
  parallel_for(next_ - first, kDocumentsPerParse, [&](std::int64_t begin, std::int64_t end) {
    for (; begin < end; ++begin) batch.documents[static_cast<std::size_t>(begin)] = spool_.read(first + begin);
  });
  return true;
}

double SpoolSource::share() const {
  return spool_.size() == 0 ? 1 : static_cast<double>(next_) / static_cast<double>(spool_.size());
}

}  // namespace teratron

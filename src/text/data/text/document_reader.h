// Plain text, JSON lines and JSON arrays, compressed or not, as one stream of documents, read in batches so that a
// corpus of any size can be worked on in little memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files/decompression.h"
#include "data/text/array_elements.h"
#include "data/text/content.h"

namespace teratron {

// A document as it stands in its file: the text itself, or the JSON object that holds it, on one line. Byte order marks
// are left out.
struct RawDocument {
  std::string_view bytes;
  const std::filesystem::path* file = nullptr;
  std::int64_t line = 0;  // of JSON lines, from 1; in an array the element's number; 0: plain text, all of the file
  bool in_array = false;
  bool any_bytes = false;  // of plain text: it need not be UTF-8, since the user says so (TextFormat::kText)
};

// "a.jsonl:12", "standard input:3", "a.json, element 4"; the file's name alone for line 0.
std::string place_of(const std::filesystem::path& file, std::int64_t line, bool in_array = false);

struct DocumentBatch {
  std::deque<std::string> buffers;  // what the documents point into; each ends with kPadding zero bytes
  std::vector<RawDocument> documents;
  std::int64_t bytes_read = 0;  // of the files as they lie there: compressed, with line ends and blank lines
};

// Between two documents.
struct InputPosition {
  std::int64_t file = 0;  // of the files, from 0
  std::int64_t line = 0;  // lines of it that lie behind, blank ones too; elements of an array
};

class DocumentReader {
 public:
  // Readable bytes behind every document, which simdjson needs.
  static constexpr std::size_t kPadding = 64;

  // `named` as find_input_files takes it. A batch holds about batch_bytes, and never less than one document. Of a
  // compressed file a document has `most_unpacked` bytes at most. UserError: as find_input_files, or a file that is
  // missing or unreadable (all are looked at before the first is read).
  DocumentReader(std::span<const std::filesystem::path> named, std::int64_t batch_bytes,
                 TextFormat format = TextFormat::kAuto, std::size_t most_unpacked = kMostUnpacked);

  // Says nothing of files that hold something else than their names say: for a second pass.
  void stay_silent() { tells_ = false; }

  // Files hold lists of short texts, a line each, which may look like settings.
  void take_lists() { takes_lists_ = true; }

  // What `named` stands for, in order.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  // Where the next batch begins.
  InputPosition position() const { return {static_cast<std::int64_t>(file_), std::max(line_, skipped_)}; }
  // Before the first batch: begins at a position of another reader of the same files. Whole files are passed over
  // unread, lines are read and left out, so batches may have no documents. Returns the bytes of the files passed over.
  std::int64_t skip_to(const InputPosition& position);

  // The size of all files together; what comes through a pipe is not counted.
  std::int64_t total_bytes() const { return total_bytes_; }

  // The next documents, in order; false when there are no more. Blank lines are no documents. What a file holds is seen
  // in it (content.h); where its name lets one expect something else, a line on standard error says so. UserError: a
  // file that seems to hold no text, or may be JSON or not; one with a NUL byte, as no text has that a model is to
  // learn (file and place); a JSON array that is cut short; compressed data that are damaged, or hold a larger
  // document.
  bool next(DocumentBatch& batch);

 private:
  void open();
  ContentKind recognise();
  std::size_t read(std::span<char> to);
  void require_lines(const Content& content, std::string_view head) const;
  void read_text(DocumentBatch& batch);
  void read_lines(DocumentBatch& batch);
  void add_lines(DocumentBatch& batch, const std::string& block);
  void read_elements(DocumentBatch& batch);
  std::size_t cut_elements(std::string& block, std::vector<std::pair<std::size_t, std::size_t>>& places);
  void require_size(std::size_t bytes) const;
  void close();

  std::vector<std::filesystem::path> files_;
  std::int64_t batch_bytes_, total_bytes_ = 0;
  TextFormat format_;
  std::size_t most_unpacked_;
  bool tells_ = true, takes_lists_ = false;
  int surprises_ = 0;                          // files that hold something else than their names say
  std::size_t file_ = 0;                       // being read
  std::optional<DecompressingReader> reader_;  // open while it is
  ContentKind kind_ = ContentKind::kText;      // of it
  bool is_at_end_ = false;
  ArrayElements elements_;    // of it, where it is an array
  std::int64_t line_ = 0;     // lines or elements read of it
  std::int64_t skipped_ = 0;  // the first so many lines of it are left out
  std::int64_t offset_ = 0;   // bytes of its text that were read
  std::string carry_;         // those that are not yet in a document: the beginning of the next one
};

}  // namespace teratron

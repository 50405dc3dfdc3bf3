// Text files and .jsonl files, plain or compressed, as one stream of documents, read in batches so that a corpus of any
// size can be worked on in little memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/decompression.h"

namespace teratron {

// What a file holds.
enum class TextFormat {
  kByName,     // JSON lines where its name says so (input_files.h). Standard input has no name: it is JSON lines where
               // its first line that is not blank is a JSON object.
  kJsonLines,  // a JSON object a line
  kText,       // one document
};

// A document as it stands in its file: the text itself, or a line of JSON that holds it.
struct RawDocument {
  std::string_view bytes;
  const std::filesystem::path* file = nullptr;
  std::int64_t line = 0;  // of a .jsonl file, from 1; 0 for a plain text file, which is one document
};

struct DocumentBatch {
  std::deque<std::string> buffers;  // what the documents point into; each ends with kPadding zero bytes
  std::vector<RawDocument> documents;
  std::int64_t bytes_read = 0;  // of the files as they lie there: compressed, with line ends and blank lines
};

// Between two documents.
struct InputPosition {
  std::int64_t file = 0;  // of the files, from 0
  std::int64_t line = 0;  // lines of it that lie behind, blank ones too
};

class DocumentReader {
 public:
  // Readable bytes behind every document, which simdjson needs.
  static constexpr std::size_t kPadding = 64;

  // `named` as find_input_files takes it. A batch holds about batch_bytes, and never less than one document. UserError:
  // as find_input_files, or a file that is missing or unreadable (all are looked at before the first is read).
  DocumentReader(std::span<const std::filesystem::path> named, std::int64_t batch_bytes,
                 TextFormat format = TextFormat::kByName);

  // What `named` stands for, in order.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  // Where the next batch begins.
  InputPosition position() const { return {static_cast<std::int64_t>(file_), std::max(line_, skipped_)}; }
  // Before the first batch: begins at a position of another reader of the same files. Whole files are passed over
  // unread, lines are read and left out, so batches may have no documents. Returns the bytes of the files passed over.
  std::int64_t skip_to(const InputPosition& position);

  // The size of all files together; what comes through a pipe is not counted.
  std::int64_t total_bytes() const { return total_bytes_; }

  // The next documents, in order; false when there are no more. Blank lines are no documents. UserError: a file that
  // holds a NUL byte or is UTF-16, as no text does that a model is to learn (file and place); one whose compressed data
  // are damaged; standard input that begins like JSON lines and is not.
  bool next(DocumentBatch& batch);

 private:
  void open();
  bool holds_lines();
  bool first_line_is_object();
  std::size_t read(std::span<char> to);
  void read_text(DocumentBatch& batch);
  void read_lines(DocumentBatch& batch);
  void add_lines(DocumentBatch& batch, const std::string& block);
  void close();

  std::vector<std::filesystem::path> files_;
  std::int64_t batch_bytes_, total_bytes_ = 0;
  TextFormat format_;
  std::size_t file_ = 0;                       // being read
  std::optional<DecompressingReader> reader_;  // open while it is
  bool has_lines_ = false, is_at_end_ = false;
  std::int64_t line_ = 0;     // lines read of it
  std::int64_t skipped_ = 0;  // the first so many lines of it are left out
  std::int64_t offset_ = 0;   // bytes of its text that were read
  std::string carry_;         // those that are not yet in a document: the beginning of its next line
};

}  // namespace teratron

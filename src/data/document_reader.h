// Text files and .jsonl files as one stream of documents, read in batches so that a corpus of any size can be worked on
// in little memory.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace teratron {

// A document as it stands in its file: the text itself, or a line of JSON that holds it.
struct RawDocument {
  std::string_view bytes;
  const std::filesystem::path* file = nullptr;
  std::int64_t line = 0;  // of a .jsonl file, from 1; 0 for a plain text file, which is one document
};

struct DocumentBatch {
  std::deque<std::string> buffers;  // what the documents point into; each ends with kPadding zero bytes
  std::vector<RawDocument> documents;
  std::int64_t bytes_read = 0;  // of the files, with line ends and blank lines
};

class DocumentReader {
 public:
  // Readable bytes behind every document, which simdjson needs.
  static constexpr std::size_t kPadding = 64;

  // Files whose name ends in .jsonl hold a document per line; any other file is one document. A batch holds about
  // batch_bytes, and never less than one document. UserError: no files, or one that is missing, unreadable or a folder
  // (all are looked at before the first is read).
  DocumentReader(std::vector<std::filesystem::path> files, std::int64_t batch_bytes);

  // The size of all files together; what comes through a pipe is not counted.
  std::int64_t total_bytes() const { return total_bytes_; }

  // The next documents, in order; false when there are no more. Blank lines are no documents.
  bool next(DocumentBatch& batch);

 private:
  void read_lines(DocumentBatch& batch);
  void add_lines(DocumentBatch& batch, const std::string& block);

  std::vector<std::filesystem::path> files_;
  std::int64_t batch_bytes_, total_bytes_ = 0;
  std::size_t file_ = 0;             // being read
  std::optional<FileReader> lines_;  // open while a .jsonl file is being read
  std::int64_t line_ = 0;            // lines read of it
  std::string carry_;                // the beginning of its next line
};

}  // namespace teratron

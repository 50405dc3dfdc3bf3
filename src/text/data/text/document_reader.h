// Reads plain text, JSON lines and JSON arrays, compressed or not, and Parquet as one stream of documents, in batches,
// so that a corpus of any size needs little memory.
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
#include "parquet/row_reader.h"

namespace teratron {

// The unit of a file that documents are counted in.
enum class DocumentUnit : std::uint8_t {
  kLine,
  kElement,  // of a JSON array
  kRow,      // of a Parquet table
};

// A document as stored: the text itself, or the JSON object that holds it, on one line. Byte order marks are removed.
struct RawDocument {
  std::string_view bytes;
  const std::filesystem::path* file = nullptr;
  std::int64_t line = 0;  // the number of the line, element or row, from 1; 0: plain text, the whole file
  DocumentUnit unit = DocumentUnit::kLine;
  bool any_bytes = false;  // plain text that need not be UTF-8, since the user says so (TextFormat::kText)
  bool is_base64 = false;  // the value in the column of take_bytes() is bytes in base64
};

// "a.jsonl:12", "standard input:3", "a.json, element 4", "a.parquet, row 5"; the file's name alone for line 0.
std::string place_of(const std::filesystem::path& file, std::int64_t line, DocumentUnit unit = DocumentUnit::kLine);
// "line", "element", "row".
std::string_view name_of(DocumentUnit unit);

struct DocumentBatch {
  std::deque<std::string> buffers;  // own the documents' bytes; each ends with kPadding zero bytes
  std::vector<RawDocument> documents;
  std::int64_t bytes_read = 0;  // in the files as stored: compressed, with line ends and blank lines
};

// A position between two documents.
struct InputPosition {
  std::int64_t file = 0;  // index of the file
  std::int64_t line = 0;  // lines before it in the file, with blank ones; or elements of an array, or rows
};

class DocumentReader {
 public:
  // Readable bytes after each document, which simdjson needs.
  static constexpr std::size_t kPadding = 64;

  // `named` as find_input_files takes it. A batch holds about batch_bytes, and at least one document. A document of a
  // compressed file has at most `most_unpacked` bytes. UserError: as find_input_files, or a file that is missing or
  // unreadable (all are checked before the first is read).
  DocumentReader(std::span<const std::filesystem::path> named, std::int64_t batch_bytes,
                 TextFormat format = TextFormat::kAuto, std::size_t most_unpacked = kMostUnpacked);

  // Suppresses notices of files whose content differs from their name: for a second pass.
  void stay_silent() { tells_ = false; }

  // Names the flag that messages advise in place of --format; empty: the command has none.
  void advise_flag(std::string_view format_flag) { format_flag_ = format_flag; }

  // Reads one plain text: messages do not advise to take a file as JSON.
  void take_text_alone() { takes_text_alone_ = true; }

  // Reads lists of short texts, a line each, which may look like settings.
  void take_lists() { takes_lists_ = true; }

  // Reads these columns of Parquet files alone, those of them that a file has; all where it has none of them.
  void take_columns(std::vector<std::string> names) { columns_ = std::move(names); }
  // Reads these columns of Parquet files as texts: bytes that are no UTF-8 are an error, and in base64 in others.
  void take_texts(std::vector<std::string> columns) { text_columns_ = std::move(columns); }
  // Reads this column of Parquet files in base64 where its values are bytes by their type (RawDocument::is_base64).
  void take_bytes(std::string column) { bytes_column_ = std::move(column); }

  // The files that `named` stands for, in order.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  // The position of the next batch.
  InputPosition position() const { return {static_cast<std::int64_t>(file_), std::max(line_, skipped_)}; }
  // Called before the first batch: continues at a position of another reader of the same files. Skips whole files
  // unread, and whole row groups; reads and skips lines, so batches may have no documents. Returns the bytes of the
  // skipped files.
  std::int64_t skip_to(const InputPosition& position);

  // The size of all files together, without pipes.
  std::int64_t total_bytes() const { return total_bytes_; }

  // Reads the next documents, in order; false when there are no more. Blank lines are no documents. The content of a
  // file decides its kind (content.h); if its name suggests another, a line on standard error says so. UserError: a
  // file that seems to hold no text, or may be JSON or not; one with a NUL byte (file and offset); a JSON array that is
  // cut short; compressed data that are damaged, or hold a larger document; Parquet as RowReader, or out of a pipe.
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
  void open_table();
  void read_rows(DocumentBatch& batch);
  std::int64_t bytes_taken() const;
  std::size_t cut_elements(std::string& block, std::vector<std::pair<std::size_t, std::size_t>>& places);
  void require_size(std::size_t bytes) const;
  void close();

  std::vector<std::filesystem::path> files_;
  std::int64_t batch_bytes_, total_bytes_;
  TextFormat format_;
  std::size_t most_unpacked_;
  bool tells_ = true, takes_lists_ = false, takes_text_alone_ = false;
  std::string format_flag_{kFormatFlag};
  int surprises_ = 0;                          // files whose content differs from their name
  std::size_t file_ = 0;                       // the current one
  std::optional<DecompressingReader> reader_;  // while it is open
  std::vector<std::string> columns_;           // of Parquet; empty: all
  std::vector<std::string> text_columns_;      // of those that are read, or all
  std::string bytes_column_;                   // one of them, or none
  std::optional<parquet::RowReader> rows_;     // of the current file, if it is Parquet
  bool is_base64_ = false;                     // bytes_column_ in it
  ContentKind kind_ = ContentKind::kText;      // of the current file
  bool is_at_end_ = false;
  ArrayElements elements_;    // of the current file, if it is an array
  std::int64_t line_ = 0;     // lines, elements or rows read in it
  std::int64_t skipped_ = 0;  // lines to skip at its beginning
  std::int64_t offset_ = 0;   // bytes of its text that were read
  std::string carry_;         // read bytes of the next document
};

}  // namespace teratron

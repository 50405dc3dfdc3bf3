// A document of a stream: its text, and the line of JSON that it came from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "data/text/document_reader.h"
#include "data/text/document_text.h"

namespace teratron {

struct Document {
  std::string text;    // valid UTF-8; for a page: an HTTP response, as bytes
  std::string record;  // the line of JSON it came from; empty for a plain text file
  const std::filesystem::path* file = nullptr;
  std::int64_t line = 0;  // the number of the line, element or row in `file`, from 1; 0: a plain text file
  DocumentUnit unit = DocumentUnit::kLine;
  std::int64_t number = -1;  // in the spool of the last survey (spool.h); -1 before one
  bool changed = false;      // `text` differs from the text in `record`
};

// Parses a RawDocument; what it has in base64 becomes bytes. UserError, with file and line: the line is not a JSON
// object with a text under `text_of`'s key, or a plain text is not UTF-8.
Document make_document(const RawDocument& raw, DocumentText& text_of);

// The document as a line of JSON without a line end. All bytes of `record` but the text's are kept: other fields, their
// order, numbers as they were written. A plain text file's document is {"KEY": text}.
std::string json_line_of(const Document& document, std::string_view text_key);

// Key of the mark of a document that is one of several pieces of another: the number of that one among the documents
// that data decontaminate read, from 0.
inline constexpr std::string_view kPieceOf = "piece_of";

// `record`, a JSON object with a text, with the member kPieceOf. A record that has it is left unchanged: a piece that
// is cut again is still a piece of the first document.
std::string record_of_piece(std::string record, std::int64_t document);

}  // namespace teratron

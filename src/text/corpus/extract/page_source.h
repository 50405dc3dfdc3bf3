// Reads pages for `data extract` from WARC files, files of HTML, and JSON lines, arrays and Parquet with HTML in them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "corpus/stream/document_source.h"

namespace teratron {

struct PageSourceOptions {
  std::string html_key = "html";     // key of the page in a line of JSON
  std::int64_t most_page_bytes = 0;  // memory holds at most one byte more of a page
  std::int64_t batch_bytes = 0;
};

using RecordCounts = std::map<std::string, std::int64_t>;  // WARC records by type

// Documents are pages. `text` is an HTTP response, as bytes, or its head alone if that declares no page
// (http_response.h). `record` is the line of JSON; {"url": ..., "date": ...} for a page in a WARC; {} for a file of
// HTML. `line` is the line, the record's number, or 0.
//
// kAuto: JSON lines and arrays by the file's content (data/text/content.h), WARC by its name or first bytes; any other
// possible text is a page, compressed or not. Standard input and pipes are WARC or a page. kJsonLines, kText: every
// file is JSON lines, or is a page. `from`: the end of a batch of an earlier source of the same files; its line is a
// record of a WARC file. `counts` is added to, and may be read between batches. UserError as DocumentReader and
// WarcReader; standard input that begins like JSON lines without --format.
std::unique_ptr<DocumentSource> open_pages(std::vector<std::filesystem::path> files, TextFormat format,
                                           const PageSourceOptions& options, const InputPosition& from,
                                           std::shared_ptr<RecordCounts> counts);

// As find_input_files; folders give all .html, .htm, .xhtml, .warc and .jsonl below.
std::vector<std::filesystem::path> find_page_files(std::span<const std::filesystem::path> named);

}  // namespace teratron

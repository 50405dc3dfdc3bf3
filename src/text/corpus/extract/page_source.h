// Where `data extract` gets pages from: WARC files, files of HTML, JSON lines with HTML in them.
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
  std::string html_key = "html";     // what the page of a line of JSON is under
  std::int64_t most_page_bytes = 0;  // no more than one byte more of a page is held
  std::int64_t batch_bytes = 0;
};

using RecordCounts = std::map<std::string, std::int64_t>;  // records of WARC files by their type

// Documents are pages: `text` is an HTTP response, as bytes, of the head alone where that says that it is no page
// (http_response.h). `record` is the line of JSON; of a WARC's page {"url": ..., "date": ...}; of a file of HTML {}.
// `line` is the line, the record's number, or 0.
//
// kAuto: JSON lines and arrays by what is in the file (data/text/content.h), WARC by its name or its first bytes,
// anything else that may be text is a page, compressed or not; standard input and pipes are WARC or a page. kJsonLines,
// kText: every file is JSON lines, is a page. `from`: where a batch of an earlier source of the same files ended; its
// line is a record of a WARC file. `counts` is added to, and may be read when a batch has been given. UserError as
// DocumentReader and WarcReader; standard input that begins like JSON lines and is not said to be.
std::unique_ptr<DocumentSource> open_pages(std::vector<std::filesystem::path> files, TextFormat format,
                                           const PageSourceOptions& options, const InputPosition& from,
                                           std::shared_ptr<RecordCounts> counts);

// As find_input_files; folders give all .html, .htm, .xhtml, .warc and .jsonl below.
std::vector<std::filesystem::path> find_page_files(std::span<const std::filesystem::path> named);

}  // namespace teratron

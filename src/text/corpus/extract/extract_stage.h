// `data extract`: finds the article of each page.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "corpus/stream/stage.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct ExtractOptions {
  std::string html_key = "html";                         // key of the page in a line of JSON
  std::string text_key = "text";                         // key of the article in the output
  std::int64_t least_characters = 100;                   // of an article, without spaces
  std::int64_t most_page_bytes = std::int64_t{8} << 20;  // without chunks and compression
};

// A first stage. It reads pages with open_pages() and makes documents {text, the other fields of the record, "title"
// and "url" if the page has them and the record does not}. Pages without an article or that cannot be read are dropped
// with the reason; nothing in a page is an error.
std::unique_ptr<Stage> make_extract_stage(ExtractOptions options);

struct ExtractSettings {
  static constexpr StageText kText{.name = "extract",
                                   .summary = "finds the articles in pages of HTML and WARC files",
                                   .doing = "extracting articles",
                                   .reads = "pages"};
  ExtractOptions options;

  void add_fields(FieldList& list) {
    list.add("field", &options.html_key, "KEY", "the HTML of a .jsonl line or .parquet row is under this key");
    list.add("min-characters", &options.least_characters, "N", "drop articles with fewer characters, without spaces")
        .between(1);
    list.add("max-page-bytes", &options.most_page_bytes, "N", "drop larger pages").between(1, std::int64_t{1} << 30);
  }
  std::unique_ptr<Stage> make(const StreamOptions& stream) const {
    ExtractOptions made = options;
    made.text_key = stream.text_key;
    return make_extract_stage(std::move(made));
  }
};

}  // namespace teratron

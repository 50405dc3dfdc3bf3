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
// and "url" if the page has them and the record does not}: the title of og:title or <title>, the URL of rel=canonical.
// Nothing in a page is an error. Pages are dropped for these reasons:
//   "bad http"    no head of a response, or chunks and compression that give nothing
//   "status"      not 200
//   "not html"    by the server's type or, if that is useless, by WARC-Identified-Payload-Type (HttpHead::is_page), and
//                 then the body is not read into memory; or neither says anything and the body is no HTML
//   "too large"   more than most_page_bytes, or a tree of more than 64 MiB and 64 times the page
//   "encoding"    no text, under an unknown Content-Encoding
//   "not a page"  a format, a program, data or an unknown encoding, by its bytes (body_kind.h)
//   "too deep"    tags nested deeper than 512, or hundreds deep at most tags (html_simplifier.h)
//   "no article"  fewer than least_characters in the article (article.h)
// A page out of a damaged body is kept as far as it goes, and counted by the damage: "kept though damaged: ...".
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

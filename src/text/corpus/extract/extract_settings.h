// The flags of `data extract`.
#pragma once

#include "corpus/extract/extract_stage.h"
#include "corpus/stage_text.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct ExtractSettings {
  static constexpr StageText kText{.name = "extract",
                                   .summary = "finds the articles in pages of HTML and WARC files",
                                   .doing = "extracting articles",
                                   .reads = "pages"};
  ExtractOptions options;

  void add_fields(FieldList& list) {
    list.add("field", &options.html_key, "KEY", "the page of a .jsonl line, HTML, is under this key");
    list.add("min-characters", &options.least_characters, "N", "drop articles that are shorter, spaces not counted")
        .between(1);
    list.add("max-page-bytes", &options.most_page_bytes, "N", "drop pages that are larger")
        .between(1, std::int64_t{1} << 30);
  }
  std::unique_ptr<Stage> make(const StreamOptions& stream) const {
    ExtractOptions made = options;
    made.text_key = stream.text_key;
    return make_extract_stage(std::move(made));
  }
};

}  // namespace teratron

// `data extract`: the article of each page.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "corpus/stream/stage.h"

namespace teratron {

struct ExtractOptions {
  std::string html_key = "html";                         // what the page of a line of JSON is under
  std::string text_key = "text";                         // and the article, in what is written
  std::int64_t least_characters = 100;                   // of an article, spaces not counted
  std::int64_t most_page_bytes = std::int64_t{8} << 20;  // of a page, without chunks and compression
};

// The first stage of a stream: it reads pages as open_pages() gives them, and makes documents {text, what else the
// record had, "title" where the page has one and the record none, "url" likewise}. Dropped is what has no article, and
// what cannot be read, with the reason; nothing that a page holds is an error.
std::unique_ptr<Stage> make_extract_stage(ExtractOptions options);

}  // namespace teratron

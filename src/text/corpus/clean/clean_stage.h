// data clean: repairs text, and drops what is short or comes from the wrong place.
#pragma once

#include <memory>
#include <optional>

#include "corpus/clean/url_rules.h"
#include "corpus/stream/stage.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct CleanOptions {
  std::optional<Tokenizer> tokenizer;  // needed where min_tokens > 0
  std::int64_t min_tokens = 128;       // of the cleaned text
  bool keep_newlines = false;
  std::optional<UrlRules> url_rules;  // nothing: URLs are not looked at
  std::string url_key = "url";
};

// Drops, in this order: "malformed url", "domain", "extension" (url_rules.h), "short" (fewer tokens), "duplicate url"
// (of a document before it that was kept). A document without a URL passes the rules about them.
// Memory: 32 bytes or so for each URL that is kept.
std::unique_ptr<Stage> make_clean_stage(CleanOptions options);

// Whether `text` has at least `least` tokens; encodes no more of it than it takes.
bool has_tokens(const Tokenizer& tokenizer, std::string_view text, std::int64_t least);

}  // namespace teratron

// data clean: repairs text, and drops short documents and those from unwanted places.
#pragma once

#include <memory>
#include <optional>

#include "corpus/clean/url_rules.h"
#include "corpus/stream/stage.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct CleanOptions {
  std::optional<Tokenizer> tokenizer;  // required if min_tokens > 0
  std::int64_t min_tokens = 128;       // of the cleaned text
  bool keep_newlines = false;
  std::optional<UrlRules> url_rules;  // empty: URLs are ignored
  std::string url_key = "url";
};

// Applies the rules about URLs, repairs the text (text_repair.h), and drops what is then too short or a duplicate.
// Drops, in this order: "malformed url", "domain", "extension" (url_rules.h), "short" (fewer tokens), "duplicate url"
// (of an earlier document that was kept). Pieces of one document, which data decontaminate marks (kPieceOf in
// document.h), are no duplicates of one another. URL rules do not apply to documents without a URL. Memory: about 40
// bytes for each URL that is kept.
std::unique_ptr<Stage> make_clean_stage(CleanOptions options);

// Whether `text` has at least `least` tokens; encodes only as much of it as that takes.
bool has_tokens(const Tokenizer& tokenizer, std::string_view text, std::int64_t least);

struct CleanSettings {
  static constexpr StageText kText{.name = "clean",
                                   .summary = "repairs text, and drops short documents and those from unwanted sites",
                                   .doing = "cleaning"};
  std::filesystem::path tokenizer, url_lists;
  std::int64_t min_tokens = 128;
  bool keep_newlines = false, no_url_rules = false;
  std::string url_key = "url";

  void add_fields(FieldList& list);
  Faults faults(bool runs) const;
  std::vector<std::filesystem::path> files_read() const;
  std::unique_ptr<Stage> make(const StreamOptions& stream) const;

 private:
  std::filesystem::path lists() const;  // empty: none are read, or the installed ones are missing
};

}  // namespace teratron

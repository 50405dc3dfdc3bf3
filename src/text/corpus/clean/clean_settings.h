// The flags of `data clean`.
#pragma once

#include "corpus/stage_text.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct CleanSettings {
  static constexpr StageText kText{
      .name = "clean",
      .summary = "repairs text, and drops documents that are short or come from the wrong place",
      .doing = "cleaning"};
  std::filesystem::path tokenizer, url_lists;
  std::int64_t min_tokens = 128;
  bool keep_newlines = false, no_url_rules = false;
  std::string url_key = "url";

  void add_fields(FieldList& list);
  Faults faults(bool runs) const;
  std::vector<std::filesystem::path> files_read() const;
  std::unique_ptr<Stage> make(const StreamOptions& stream) const;
};

}  // namespace teratron

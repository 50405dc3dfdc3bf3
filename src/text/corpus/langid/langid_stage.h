// data langid: keeps the documents of one language, as CLD2 detects it. Debian's library has tables of 83 languages;
// pycld2's are larger. The two agree on paragraphs, and on 41 of 47 texts, most of them short sentences; the others are
// four short sentences that ours leaves open, and two texts in several languages.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "corpus/stream/stage.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct DetectedLanguage {
  std::string code;          // "en", "zh-Hant"; "un": unknown
  int percent = 0;           // of the text in this language
  bool is_reliable = false;  // clearly ahead of the second language
  double score = 0;          // likelihood of the letter sequences: higher for text that reads more like the language
};

// Runs CLD2 on a text (valid UTF-8), at most on its first 2 GiB.
DetectedLanguage detect_language(std::string_view text);

// Whether CLD2 can detect a language of this code.
bool is_language_code(const std::string& code);

// Drops "language" (another one) and, unless `keep_unsure`, "unsure" (CLD2 calls its result unreliable). UserError: not
// a language code. Case is ignored, and current codes (he, zh-TW) stand for CLD2's.
std::unique_ptr<Stage> make_langid_stage(const std::string& code, bool keep_unsure = false);

struct LangidSettings {
  static constexpr StageText kText{
      .name = "langid", .summary = "keeps the documents of one language", .doing = "detecting languages"};
  std::string language = "en";
  bool keep_unsure = false;

  void add_fields(FieldList& list) {
    list.add("language", &language, "CODE", "keep documents in this language: en, de, zh, zh-Hant ...");
    list.add("keep-unsure", &keep_unsure, "", "also keep documents for which the detector's result is unreliable");
  }
  std::unique_ptr<Stage> make(const StreamOptions&) const { return make_langid_stage(language, keep_unsure); }
};

}  // namespace teratron

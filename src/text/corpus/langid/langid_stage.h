// data langid: keeps the documents of one language.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "corpus/stream/stage.h"

namespace teratron {

struct DetectedLanguage {
  std::string code;          // "en", "zh-Hant"; "un": unknown
  int percent = 0;           // of the text that is in it
  bool is_reliable = false;  // far enough before the second language
  double score = 0;          // of the letters' sequences in it: the larger, the more the text reads like the language
};

// What CLD2 makes of a text (valid UTF-8). Of more than 2 GiB it sees the beginning.
DetectedLanguage detect_language(std::string_view text);

// Whether CLD2 can detect a language of this code.
bool is_language_code(const std::string& code);

// Drops "language" (another one) and, unless `keep_unsure`, "unsure" (CLD2 does not rely on what it found). UserError:
// not a language code. Case does not count, and codes of today (he, zh-TW) stand for CLD2's.
std::unique_ptr<Stage> make_langid_stage(const std::string& code, bool keep_unsure = false);

}  // namespace teratron

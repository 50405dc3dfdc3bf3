// The flags of `data langid`.
#pragma once

#include "corpus/langid/langid_stage.h"
#include "corpus/stage_text.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct LangidSettings {
  static constexpr StageText kText{
      .name = "langid", .summary = "keeps the documents of one language", .doing = "detecting languages"};
  std::string language = "en";
  bool keep_unsure = false;

  void add_fields(FieldList& list) {
    list.add("language", &language, "CODE", "keep documents in this language: en, de, zh, zh-Hant ...");
    list.add("keep-unsure", &keep_unsure, "", "keep them where the detector does not rely on what it found, too");
  }
  std::unique_ptr<Stage> make(const StreamOptions&) const { return make_langid_stage(language, keep_unsure); }
};

}  // namespace teratron

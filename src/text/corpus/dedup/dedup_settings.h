// The flags of `data dedup`.
#pragma once

#include "corpus/dedup/dedup_stage.h"
#include "corpus/stage_text.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct DedupSettings {
  static constexpr StageText kText{.name = "dedup",
                                   .summary = "keeps the first of documents that are nearly the same",
                                   .doing = "looking for duplicates"};
  DedupOptions options;

  void add_fields(FieldList& list);
  Faults faults(bool runs) const;
  std::unique_ptr<Stage> make(const StreamOptions& stream) const;
};

}  // namespace teratron

// The flags of `data decontaminate`.
#pragma once

#include "corpus/overlap/decontaminate_stage.h"
#include "corpus/stage_text.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct DecontaminateSettings {
  static constexpr StageText kText{.name = "decontaminate",
                                   .summary = "takes what is in evaluation sets out of a training set",
                                   .doing = "looking for evaluation sets"};
  DecontaminateOptions options;

  void add_fields(FieldList& list);
  Faults faults(bool runs) const;
  std::vector<std::filesystem::path> files_read() const { return options.evaluation; }
  std::unique_ptr<Stage> make(const StreamOptions& stream) const;
};

}  // namespace teratron

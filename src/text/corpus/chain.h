// The stages that users can name, and chains of them: `data clean --then langid,dedup`.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/faults.h"
#include "corpus/clean/clean_stage.h"
#include "corpus/dedup/dedup_stage.h"
#include "corpus/extract/extract_stage.h"
#include "corpus/langid/langid_stage.h"
#include "corpus/overlap/decontaminate_stage.h"
#include "corpus/stream/stage.h"
#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

// Every stage, in the order of help texts, by the struct of its settings, which has
//   static constexpr StageText kText;                                    its name
//   void add_fields(FieldList& list);                                    its flags
//   std::unique_ptr<Stage> make(const StreamOptions& stream) const;      UserError: what the files it reads do not hold
// and may have
//   Faults faults(bool runs) const;                                      `runs`: whether it is a stage of the chain
//   std::vector<std::filesystem::path> files_read() const;               beside the stream's
using StageSettings = std::tuple<ExtractSettings, CleanSettings, DedupSettings, LangidSettings, DecontaminateSettings>;

std::vector<StageText> all_stages();

// The settings of all stages, since --then may name any of them, and the stages that run.
class StageChain {
 public:
  explicit StageChain(StageText first) : first_(first) {}

  const StageText& first() const { return first_; }
  void add_then_field(FieldList& list);
  void add_stage_fields(FieldList& list);
  Faults faults() const;  // also: a flag was read that is of a stage that does not run

  // The files of the stages that run, beside the stream's.
  std::vector<std::filesystem::path> files_read() const;
  std::vector<std::unique_ptr<Stage>> make(const StreamOptions& stream) const;

 private:
  std::vector<std::string> names() const;

  StageText first_;
  std::vector<std::string> then_;
  StageSettings settings_;
  std::map<std::string, StageText> given_;  // the stage of each flag that was read
};

}  // namespace teratron

// teratron data decontaminate: a training set without what is in evaluation sets.
#include "cli/commands.h"
#include "cli/data/corpus_settings.h"

namespace teratron {
namespace {

struct DataDecontaminateOptions : CorpusSettings {
  Faults faults() const { return faults_of("decontaminate"); }
};

FieldList fields_of(DataDecontaminateOptions& options) { return fields_of_corpus(options); }

}  // namespace

Command data_decontaminate_command() {
  return make_command<DataDecontaminateOptions>(
      "data decontaminate", "takes what is in evaluation sets out of a training set",
      [](const DataDecontaminateOptions& options) { run_corpus(options, "decontaminate"); });
}

}  // namespace teratron

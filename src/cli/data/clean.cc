// teratron data clean: text as it was meant, without what is short or comes from the wrong place.
#include "cli/commands.h"
#include "cli/data/corpus_settings.h"

namespace teratron {
namespace {

struct DataCleanOptions : CorpusSettings {
  Faults faults() const { return faults_of("clean"); }
};

FieldList fields_of(DataCleanOptions& options) { return fields_of_corpus(options); }

}  // namespace

Command data_clean_command() {
  return make_command<DataCleanOptions>("data clean",
                                        "repairs text, and drops documents that are short or come from the wrong place",
                                        [](const DataCleanOptions& options) { run_corpus(options, "clean"); });
}

}  // namespace teratron

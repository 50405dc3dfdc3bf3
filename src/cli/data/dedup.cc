// teratron data dedup: of documents that are nearly the same, the first.
#include "cli/commands.h"
#include "cli/data/corpus_settings.h"

namespace teratron {
namespace {

struct DataDedupOptions : CorpusSettings {
  Faults faults() const { return faults_of("dedup"); }
};

FieldList fields_of(DataDedupOptions& options) { return fields_of_corpus(options); }

}  // namespace

Command data_dedup_command() {
  return make_command<DataDedupOptions>("data dedup", "keeps the first of documents that are nearly the same",
                                        [](const DataDedupOptions& options) { run_corpus(options, "dedup"); });
}

}  // namespace teratron

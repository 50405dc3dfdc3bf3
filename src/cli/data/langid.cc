// teratron data langid: the documents of one language.
#include "cli/commands.h"
#include "cli/data/corpus_settings.h"

namespace teratron {
namespace {

struct DataLangidOptions : CorpusSettings {
  Faults faults() const { return faults_of("langid"); }
};

FieldList fields_of(DataLangidOptions& options) { return fields_of_corpus(options); }

}  // namespace

Command data_langid_command() {
  return make_command<DataLangidOptions>("data langid", "keeps the documents of one language",
                                         [](const DataLangidOptions& options) { run_corpus(options, "langid"); });
}

}  // namespace teratron

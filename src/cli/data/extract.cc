// teratron data extract: the article of each page, from WARC files, HTML and JSON lines.
#include "cli/commands.h"
#include "cli/data/corpus_settings.h"

namespace teratron {
namespace {

struct DataExtractOptions : CorpusSettings {
  Faults faults() const { return faults_of("extract"); }
};

FieldList fields_of(DataExtractOptions& options) { return fields_of_corpus(options); }

}  // namespace

Command data_extract_command() {
  return make_command<DataExtractOptions>("data extract", "finds the articles in pages of HTML and WARC files",
                                          [](const DataExtractOptions& options) { run_corpus(options, "extract"); });
}

}  // namespace teratron

// teratron data merge: several tokenised corpora as one.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "cli/commands.h"
#include "cli/data/corpus_parts.h"
#include "cli/report.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "data/corpus_copy.h"
#include "data/indexed/corpus_sidecar.h"

namespace teratron {
namespace {

struct DataMergeOptions {
  std::vector<std::string> sources;
  std::filesystem::path out, json;
  bool overwrite = false;

  Faults faults() const {
    Faults faults;
    if (name_json_lines(sources)) {
      faults.add(
          "text and JSON lines need no merging: every command reads several files, and cat joins them, compressed or "
          "not; tokenised corpora are merged, named by PREFIX");
      return faults;
    }
    return corpus_parts_faults(sources, out);
  }
};

FieldList fields_of(DataMergeOptions& o) {
  FieldList list;
  list.add_positional(&o.sources, "PREFIX",
                      "a corpus is PREFIX.bin and PREFIX.idx; a pattern ('shard-*') names all that match");
  list.add("out", &o.out, "PREFIX", "writes PREFIX.bin, PREFIX.idx, and PREFIX.teratron.json where the corpora have it")
      .writes(FileContent::kOwn, corpus_files())
      .required = true;
  add_overwrite_field(list, o.overwrite);
  add_json_field(list, o.json);
  return list;
}

void run(const DataMergeOptions& options) {
  const double start = monotonic_seconds();
  const CopySource source = open_copy_source(options.sources);
  require_other_places(source, std::array{options.out});
  require_free(files_of_corpus(options.out), options.overwrite);
  const CopiedCorpus copied = copy_documents(source, std::array{options.out}, {}, show_share("merging")).front();
  const nlohmann::ordered_json json = {{"corpora", source.dataset->shards().size()},
                                       {"documents", copied.documents},
                                       {"sequences", copied.sequences},
                                       {"tokens", copied.tokens},
                                       {"seconds", monotonic_seconds() - start},
                                       {"peak_memory_bytes", peak_memory_bytes()}};
  report(options.json,
         fmt::format("{}, {}", counted(std::ssize(source.dataset->shards()), "corpus", "corpora"), line_of(copied)),
         json);
}

}  // namespace

Command data_merge_command() {
  return make_command<DataMergeOptions>("data merge", "joins tokenised corpora to one, documents in their order", run);
}

}  // namespace teratron

// teratron data sample: some documents of a corpus, each as likely as any other.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "cli/commands.h"
#include "cli/data/corpus_parts.h"
#include "cli/report.h"

namespace teratron {
namespace {

struct DataSampleOptions {
  std::vector<std::string> sources;
  std::filesystem::path out, json;
  std::int64_t documents = 0, tokens = 0, seed = 1234;
  double share = 0;
  bool overwrite = false;

  Faults faults() const {
    Faults faults = corpus_parts_faults(sources, out);
    const int said = (documents > 0 ? 1 : 0) + (tokens > 0 ? 1 : 0) + (share != 0 ? 1 : 0);
    faults.add_if(said != 1, "give the size of the sample by one of {}, {} and {}", Flag{"documents"}, Flag{"tokens"},
                  Flag{"share"});
    faults.add_if(!(share >= 0 && share <= 1), "{} is a share, above 0 and at most 1", Flag{"share"});
    faults.add_if(tokens > 0 && name_json_lines(sources),
                  "{} needs a tokenised corpus, and these are JSON lines; give {} or {}, or tokenise first",
                  Flag{"tokens"}, Flag{"documents"}, Flag{"share"});
    add_output_faults(faults, "the documents", out, json);
    return faults;
  }
};

FieldList fields_of(DataSampleOptions& o) {
  FieldList list;
  add_parts_sources_field(list, o.sources);
  list.add("out", &o.out, "NAME",
           "writes PREFIX.bin and .idx; of JSON lines one file, compressed if it ends in .zst; -: standard output")
      .writes(FileContent::kOwn, corpus_or_lines())
      .required = true;
  add_overwrite_field(list, o.overwrite);
  list.add("documents", &o.documents, "N", "size of the sample in documents").between(0);
  list.add("tokens", &o.tokens, "N", "draw documents until they have N tokens or more").between(0);
  list.add("share", &o.share, "X", "size of the sample as a share of the documents");
  list.add("seed", &o.seed, "N", "seed of the draw").between(0);
  add_json_field(list, o.json);
  return list;
}

std::vector<std::uint8_t> sample_of(const PartsSource& source, const DataSampleOptions& options) {
  const auto seed = static_cast<std::uint64_t>(options.seed);
  const auto require = [](std::int64_t wanted, std::int64_t there, std::string_view what) {
    if (wanted > there)
      throw_user_error("the source has {}, fewer than the {} asked for", counted(there, what), wanted);
  };
  if (options.tokens > 0) {
    require(options.tokens, source.tokens(), "token");
    return choose_sample(source.documents(), options.tokens, seed, source.size_in_tokens());
  }
  require(options.documents, source.documents(), "document");
  const auto share = static_cast<std::int64_t>(std::llround(options.share * static_cast<double>(source.documents())));
  const std::int64_t wanted = options.documents > 0 ? options.documents : share;
  if (wanted == 0) {
    throw_user_error("{} of {} is none; give a larger --share, or --documents", options.share,
                     counted(source.documents(), "document"));
  }
  return choose_sample(source.documents(), wanted, seed);
}

void run(const DataSampleOptions& options) {
  const double start = monotonic_seconds();
  const PartsSource source(options.sources);
  require_free(source.files_written_to(options.out), options.overwrite);
  const CopiedCorpus copied = source.copy({options.out}, sample_of(source, options), "sampling").front();
  nlohmann::ordered_json json;
  source.add_counts(json, copied);
  json["of_documents"] = source.documents();
  json["seconds"] = monotonic_seconds() - start;
  json["peak_memory_bytes"] = peak_memory_bytes();
  report_beside(options.out, options.json, line_of(copied, source.documents()), json);
}

}  // namespace

Command data_sample_command() {
  return make_command<DataSampleOptions>("data sample", "draws documents of a corpus, each as likely as any other",
                                         run);
}

}  // namespace teratron

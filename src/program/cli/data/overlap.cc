// teratron data overlap: how much of a test set is in a training set.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "cli/threads_field.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "corpus/overlap/overlap.h"

namespace teratron {
namespace {

struct DataOverlapOptions {
  OverlapOptions overlap;
  std::filesystem::path json;
  std::int64_t threads = 0;

  Faults faults() const {
    Faults faults;
    faults.add_if(!(overlap.false_positives > 0 && overlap.false_positives < 1), "{} is a share, between 0 and 1",
                  Flag{"false-positives"});
    return faults;
  }
};

FieldList fields_of(DataOverlapOptions& o) {
  FieldList list;
  list.add_positional(&o.overlap.training, "FILE",
                      "the training set: .jsonl, .parquet, text, folders, compressed or not; -: standard input");
  list.add("test", &o.overlap.test, "FILE", "the test set").required = true;
  list.add("ngram", &o.overlap.ngram, "N", "length of the n-grams in words").between(1, 100);
  list.add("false-positives", &o.overlap.false_positives, "X", "highest share of errors of the Bloom filter");
  list.add("exact", &o.overlap.exact, "", "count without errors: no filter, the test set in memory");
  add_text_format_fields(list, o.overlap.format, o.overlap.text_key);
  list.add("test-json-key", &o.overlap.test_text_key, "KEY",
           "the text of the test set is under this key; empty: --json-key");
  add_threads_field(list, o.threads);
  add_json_field(list, o.json);
  return list;
}

void run(const DataOverlapOptions& options) {
  use_threads(options.threads);
  const double start = monotonic_seconds();
  const OverlapCounts counts = [shown = options.overlap]() mutable {
    shown.progress = show_share("looking for the test set");
    return overlap(shown);
  }();
  const std::string method = options.overlap.exact
                                 ? "counted exactly"
                                 : fmt::format("by a Bloom filter of {}, too much by {:.3g} % at most on average",
                                               readable_bytes(static_cast<std::uint64_t>(counts.filter_bytes)),
                                               100 * options.overlap.false_positives * (1 - counts.share()));
  const std::string text = fmt::format(
      "{:.2f} % of the {} {}-grams of the test set are in the training set ({:.2f} % of the {} different ones), {}\n",
      100 * counts.share(), readable_integer(counts.test_ngrams), options.overlap.ngram, 100 * counts.distinct_share(),
      readable_integer(counts.distinct_ngrams), method);
  const nlohmann::ordered_json json = {{"share", counts.share()},
                                       {"distinct_share", counts.distinct_share()},
                                       {"ngram", options.overlap.ngram},
                                       {"test_documents", counts.test_documents},
                                       {"test_ngrams", counts.test_ngrams},
                                       {"found", counts.found},
                                       {"distinct_ngrams", counts.distinct_ngrams},
                                       {"distinct_found", counts.distinct_found},
                                       {"training_documents", counts.training_documents},
                                       {"training_ngrams", counts.training_ngrams},
                                       {"exact", options.overlap.exact},
                                       {"filter_bytes", counts.filter_bytes},
                                       {"seconds", monotonic_seconds() - start},
                                       {"peak_memory_bytes", peak_memory_bytes()}};
  report(options.json, text, json);
}

}  // namespace

Command data_overlap_command() {
  return make_command<DataOverlapOptions>("data overlap", "measures how much of a test set is in a training set", run);
}

}  // namespace teratron

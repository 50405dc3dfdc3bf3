// teratron data verify: reads every byte of a tokenised corpus, and compares it with what was written.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "console/readable.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/indexed/indexed_dataset.h"

namespace teratron {
namespace {

struct DataVerifyOptions {
  std::filesystem::path prefix, tokenizer, json;
};

FieldList fields_of(DataVerifyOptions& o) {
  FieldList list;
  list.add_positional(&o.prefix, "PREFIX", "the corpus is PREFIX.bin and PREFIX.idx");
  list.add("tokenizer", &o.tokenizer, "DIR", "also check that this tokenizer made it");
  add_json_field(list, o.json);
  return list;
}

// Damage is reported twice: in the JSON, and as the error that ends the command.
void run(const DataVerifyOptions& options) {
  const CorpusVerification found = verify_corpus(options.prefix);
  const bool is_intact = found.faults.empty(), has_checksums = found.sidecar.has_value();
  const nlohmann::ordered_json json = {{"intact", is_intact},          {"has_checksums", has_checksums},
                                       {"documents", found.documents}, {"tokens", found.tokens},
                                       {"bytes", found.bytes},         {"faults", found.faults}};
  std::string text;
  if (is_intact) {
    text =
        fmt::format("'{}' is {}: {}, {}, {}\n", options.prefix.string(),
                    has_checksums ? "intact" : "sound, but has no checksums to compare with",
                    counted(found.documents, "document"), counted(found.tokens, "token"), readable_bytes(found.bytes));
  }
  report(options.json, text, json);
  if (!is_intact) {
    throw_user_error("'{}' is damaged; copy the corpus again, or tokenise the text again:\n  {}",
                     options.prefix.string(), fmt::join(found.faults, "\n  "));
  }
  if (!options.tokenizer.empty()) {
    const Tokenizer tokenizer = Tokenizer::load(options.tokenizer);
    require_tokenizer(options.prefix, tokenizer, options.tokenizer.string());
    if (!has_checksums) IndexedDataset::open(options.prefix).check_vocabulary(tokenizer.vocab_size());
  }
}

}  // namespace

Command data_verify_command() {
  return make_command<DataVerifyOptions>("data verify", "compares every byte of a tokenised corpus with its checksums",
                                         run);
}

}  // namespace teratron

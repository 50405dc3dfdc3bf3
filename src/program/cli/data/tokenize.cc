// teratron data tokenize: a corpus of text to the .bin and .idx files that training reads.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "cli/commands.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "cli/threads_field.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/text/tokenize.h"

namespace teratron {
namespace {

struct DataTokenizeOptions {
  std::vector<std::filesystem::path> files;
  std::filesystem::path tokenizer, out, json;
  std::string json_key = TokenizeOptions{}.json_key;
  TextFormat format = TextFormat::kAuto;
  bool no_append_eod = false, overwrite = false;
  SentenceSplit split = SentenceSplit::kNone;
  std::int64_t threads = 0;

  Faults faults() const {
    Faults faults;
    faults.add_if(is_standard_stream(out), "{} is two files, and standard output is one; name a PREFIX", Flag{"out"});
    return faults;
  }
};

FieldList fields_of(DataTokenizeOptions& o) {
  FieldList list;
  list.add_positional(&o.files, "FILE",
                      "JSON lines and arrays have a document per object, Parquet one per row; plain text is one "
                      "document; all but Parquet may be compressed (gzip, zstd). A folder: all .jsonl, .parquet and "
                      ".txt files below, sorted. -: standard input");
  list.add("tokenizer", &o.tokenizer, "DIR", "folder with the tokenizer's files").required = true;
  list.add("out", &o.out, "PREFIX",
           "writes PREFIX.bin, PREFIX.idx, and PREFIX.teratron.json, which names the tokenizer")
      .writes(FileContent::kOwn, corpus_files())
      .required = true;
  add_overwrite_field(list, o.overwrite);
  add_text_format_fields(list, o.format, o.json_key);
  list.add("no-append-eod", &o.no_append_eod, "", "do not end documents with <|endoftext|>");
  list.add_choice("split-sentences", o.split,
                  {{"no", SentenceSplit::kNone},
                   {"punctuation", SentenceSplit::kPunctuation},
                   {"lines", SentenceSplit::kLines}},
                  "a sequence a sentence, for BERT; punctuation (the default of the bare flag): at the "
                  "marks that end sentences, of most scripts; lines: each line is one. Documents get no <|endoftext|>")
      .bare = "punctuation";
  add_threads_field(list, o.threads);
  add_json_field(list, o.json);
  return list;
}

auto shown_progress() {
  return [show = show_share("tokenising")](const TokenizeProgress& progress) {
    // The total does not include pipes, whose length is unknown.
    if (progress.bytes_read > progress.bytes_total) return;
    show(static_cast<double>(progress.bytes_read) / static_cast<double>(progress.bytes_total));
  };
}

void run(const DataTokenizeOptions& options) {
  use_threads(options.threads);
  require_free(files_of_corpus(options.out), options.overwrite);
  const double start = monotonic_seconds();
  const auto seconds = [&] { return monotonic_seconds() - start; };
  const TokenizeCounts counts = tokenize_files(Tokenizer::load(options.tokenizer), options.files, options.out,
                                               {.format = options.format,
                                                .tokenizer_name = options.tokenizer.string(),
                                                .json_key = options.json_key,
                                                .append_end_of_text = !options.no_append_eod,
                                                .split = options.split,
                                                .progress = shown_progress()});

  std::string text = fmt::format(
      "{}, {} from {} in {}: {}\n", counted(counts.documents, "document"), counted(counts.tokens, "token"),
      readable_bytes(static_cast<std::uint64_t>(counts.bytes)), readable_duration(seconds()), options.out.string());
  if (counts.empty_documents > 0) {
    text += fmt::format("{} without text left out\n", counted(counts.empty_documents, "document"));
  }
  if (options.split != SentenceSplit::kNone) {
    text += fmt::format("{}; documents of a single one, which give BERT no pair: {}\n",
                        counted(counts.sentences, "sentence"), readable_integer(counts.single_sentences));
  }
  const nlohmann::ordered_json json = {
      {"documents", counts.documents}, {"empty_documents", counts.empty_documents},
      {"sentences", counts.sentences}, {"single_sentence_documents", counts.single_sentences},
      {"tokens", counts.tokens},       {"bytes", counts.bytes},
      {"seconds", seconds()},          {"peak_memory_bytes", peak_memory_bytes()}};
  report(options.json, text, json);
}

}  // namespace

Command data_tokenize_command() {
  return make_command<DataTokenizeOptions>("data tokenize", "turns text into the token files that training reads", run);
}

}  // namespace teratron

#include "cli/data/corpus_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "base/host/standard_streams.h"
#include "base/host/threads.h"
#include "cli/report.h"
#include "cli/text_format.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "console/text_table.h"
#include "corpus/clean/clean_stage.h"
#include "corpus/dedup/dedup_stage.h"
#include "corpus/extract/extract_stage.h"
#include "corpus/langid_stage.h"
#include "corpus/overlap/decontaminate_stage.h"
#include "corpus/stream/stream_json.h"
#include "runtime/end_signals.h"
#include "telemetry/peak_memory.h"

namespace teratron {
namespace {

constexpr double kLeastJaccard = 0.3;  // below, sketches of this size do not tell

struct KnownStage {
  std::string_view name, doing;
  std::unique_ptr<Stage> (*make)(const CorpusSettings&);
};

std::unique_ptr<Stage> clean_stage(const CorpusSettings& settings) {
  CleanOptions options{
      .min_tokens = settings.min_tokens, .keep_newlines = settings.keep_newlines, .url_key = settings.url_key};
  if (settings.min_tokens > 0) options.tokenizer = Tokenizer::load(settings.tokenizer);
  if (!settings.no_url_rules) {
    const std::filesystem::path lists = settings.url_lists.empty() ? installed_url_lists() : settings.url_lists;
    if (lists.empty()) {
      throw_user_error(
          "the lists of domains and endings that come with teratron are not where they were installed; name "
          "a folder with --url-lists, or leave the rules about URLs out with --no-url-rules");
    }
    options.url_rules.emplace(lists);
  }
  return make_clean_stage(std::move(options));
}

std::unique_ptr<Stage> dedup_stage(const CorpusSettings& settings) {
  return make_dedup_stage(
      {.jaccard = settings.jaccard, .ngram = settings.dedup_ngram, .folder = folder_for_temporaries(settings.out)});
}

std::unique_ptr<Stage> langid_stage(const CorpusSettings& settings) {
  return make_langid_stage(settings.language, settings.keep_unsure);
}

std::unique_ptr<Stage> extract_stage(const CorpusSettings& settings) {
  return make_extract_stage({.html_key = settings.html_key,
                             .text_key = settings.json_key,
                             .least_characters = settings.least_characters,
                             .most_page_bytes = settings.most_page_bytes});
}

std::unique_ptr<Stage> decontaminate_stage(const CorpusSettings& settings) {
  DecontaminateOptions options{.evaluation = settings.evaluation,
                               .format = settings.format,
                               .text_key = settings.json_key,
                               .longest = settings.cut_ngram,
                               .frequent = settings.frequent,
                               .document_share = settings.document_share};
  options.shortest = std::min(options.shortest, options.longest);
  return make_decontaminate_stage(std::move(options));
}

constexpr std::array kKnownStages = {
    KnownStage{"clean", "cleaning", clean_stage},
    KnownStage{"langid", "detecting languages", langid_stage},
    KnownStage{"decontaminate", "looking for evaluation sets", decontaminate_stage},
    KnownStage{"dedup", "looking for duplicates", dedup_stage},
    KnownStage{"extract", "extracting articles", extract_stage},
};

const KnownStage* known_stage(std::string_view name) {
  const auto* found = std::ranges::find(kKnownStages, name, &KnownStage::name);
  return found == kKnownStages.end() ? nullptr : found;
}

std::vector<std::string> stage_names(const CorpusSettings& settings, std::string_view first) {
  std::vector<std::string> names = {std::string(first)};
  for (const std::string& word : settings.then) {
    for (std::string_view rest = word; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      if (comma > 0) names.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return names;
}

std::string text_of(const StreamCounts& counts, const std::filesystem::path& out, double seconds) {
  const bool are_pieces = counts.kept > counts.documents;  // of documents that were cut
  std::string text =
      fmt::format("{}{} of {} kept in {}, {} of text from {}: {}\n", readable_integer(counts.kept),
                  are_pieces ? " pieces" : "", counted(counts.documents, "document"), readable_duration(seconds),
                  readable_bytes(static_cast<std::uint64_t>(counts.kept_bytes)),
                  readable_bytes(static_cast<std::uint64_t>(counts.text_bytes)), out.string());
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight});
  for (const StageCounts& stage : counts.stages) {
    if (stage.changed > 0) table.row({stage.name, "changed", readable_integer(stage.changed)});
    for (const auto& [reason, count] : stage.dropped) {
      table.row({stage.name, "dropped: " + reason, readable_integer(count)});
    }
  }
  text += table.text();
  if (counts.bad > 0) {
    text += fmt::format("{} left out that cannot be read; the first: {}\n", counted(counts.bad, "document"),
                        counts.first_bad);
  }
  return text;
}

// What the output depends on, by flag: all but where results go and how the work is done.
std::map<std::string, std::string> settings_by_flag(CorpusSettings settings) {
  constexpr std::array<std::string_view, 7> kNoMatter = {"out",     "dropped",     "json",           "overwrite",
                                                         "threads", "batch-bytes", "journal-seconds"};
  std::map<std::string, std::string> values;
  for (const Field& field : fields_of_corpus(settings)) {
    if (field.role == FieldRole::kPositional || std::ranges::find(kNoMatter, field.name) != kNoMatter.end()) continue;
    values[field.display_name()] = field.value_text();
  }
  return values;
}

}  // namespace

Faults CorpusSettings::faults_of(std::string_view stage) const {
  Faults faults;
  const std::vector<std::string> names = stage_names(*this, stage);
  std::string known;
  for (const KnownStage& one : kKnownStages) known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
  for (std::size_t i = 0; i < names.size(); ++i) {
    faults.add_if(known_stage(names[i]) == nullptr, "there is no stage '{}'; there are: {}", names[i], known,
                  Flag{"then"});
    faults.add_if(std::ranges::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
                      names.begin() + static_cast<std::ptrdiff_t>(i),
                  "{} is named twice, and a stage runs once", names[i], Flag{"then"});
  }
  faults.add_if(std::ranges::find(names.begin() + 1, names.end(), "extract") != names.end(),
                "extract reads pages, so it can only be the first stage: teratron data extract PAGES --then ...",
                Flag{"then"});
  const bool cleans = std::ranges::find(names, "clean") != names.end();
  const bool decontaminates = std::ranges::find(names, "decontaminate") != names.end();
  faults.add_if(decontaminates && evaluation.empty(),
                "what decontaminate takes out is not said; name the files of evaluation sets with {}",
                Flag{"evaluation"});
  faults.add_if(!(document_share > 0 && document_share <= 1), "{} is a share, above 0 and at most 1",
                Flag{"document-share"});
  faults.add_if(cleans && min_tokens > 0 && tokenizer.empty(),
                "{} has the tokens of a document counted; name the tokenizer's folder with {}, or give 0",
                Flag{"min-tokens"}, Flag{"tokenizer"});
  faults.add_if(!(max_bad_share >= 0 && max_bad_share <= 1), "{} is a share, from 0 to 1", Flag{"max-bad-share"});
  faults.add_if(is_standard_stream(dropped) && is_standard_stream(out),
                "{} and {} both go to standard output (-); name a file for one of them", Flag{"out"}, Flag{"dropped"});
  faults.add_if(!dropped.empty() && dropped == out, "{} and {} name one file, and are two", Flag{"out"},
                Flag{"dropped"});
  faults.add_if(is_standard_stream(dropped) && is_standard_stream(json),
                "{} and {} both go to standard output (-); name a file for one of them", Flag{"dropped"}, Flag{"json"});
  faults.add_if(!(jaccard >= kLeastJaccard && jaccard < 1), "{} is a share, from {} to below 1", Flag{"jaccard"},
                kLeastJaccard);
  add_output_faults(faults, "the documents", out, json);
  return faults;
}

FieldList fields_of_corpus(CorpusSettings& s) {
  FieldList list;
  list.add_positional(&s.files, "FILE",
                      "JSON lines and arrays have a document per object; plain text is one document; either may be "
                      "compressed (gzip, zstd). A folder: all .jsonl and .txt files below, sorted. -: standard input. "
                      "Of extract: WARC files, pages of HTML, JSON lines with HTML in them");
  list.add("out", &s.out, "FILE",
           "what is kept, a line of JSON each; compressed if it ends in .zst; -: standard output")
      .required = true;
  list.add("then", &s.then, "STAGES", "further stages on what is left, one after another: langid,dedup");
  list.add("dropped", &s.dropped, "FILE", "what was dropped, a line of JSON each, with the stage and the reason");
  add_overwrite_field(list, s.overwrite);
  list.add("max-bad-share", &s.max_bad_share, "X", "fail if more of the documents cannot be read");
  add_text_format_fields(list, s.format, s.json_key);
  list.add("threads", &s.threads, "N", "0: one a core; the output is the same for any number").between(0);
  list.add("batch-bytes", &s.batch_bytes, "N", "bytes of text that are in work at a time").between(1).role =
      FieldRole::kHiddenFlag;
  list.add("journal-seconds", &s.journal_seconds, "X", "between two points that a killed run can go on from; 0: all")
      .role = FieldRole::kHiddenFlag;
  add_json_field(list, s.json);
  list.group("Of extract");
  list.add("field", &s.html_key, "KEY", "the page of a .jsonl line, HTML, is under this key");
  list.add("min-characters", &s.least_characters, "N", "drop articles that are shorter, spaces not counted").between(1);
  list.add("max-page-bytes", &s.most_page_bytes, "N", "drop pages that are larger").between(1, std::int64_t{1} << 30);
  list.group("Of clean");
  list.add("tokenizer", &s.tokenizer, "DIR", "folder with the files of the tokenizer that tokens are counted with");
  list.add("min-tokens", &s.min_tokens, "N", "drop documents with fewer tokens").between(0);
  list.add("keep-newlines", &s.keep_newlines, "", "leave line ends inside of sentences and empty lines as they are");
  list.add("url-key", &s.url_key, "KEY", "the URL of a .jsonl line is under this key");
  list.add("url-lists", &s.url_lists, "DIR",
           "domains.txt and extensions.txt of documents to drop; else those installed");
  list.add("no-url-rules", &s.no_url_rules, "", "do not look at URLs");
  list.group("Of dedup");
  list.add("jaccard", &s.jaccard, "X", "documents are duplicates whose sets of n-grams are more alike");
  list.add("shingle", &s.dedup_ngram, "N", "words of an n-gram").between(1, 100);
  list.group("Of langid");
  list.add("language", &s.language, "CODE", "keep documents in this language: en, de, zh, zh-Hant ...");
  list.add("keep-unsure", &s.keep_unsure, "", "keep them where the detector does not rely on what it found, too");
  list.group("Of decontaminate");
  list.add("evaluation", &s.evaluation, "FILE", "texts of evaluation sets, named as FILE is");
  list.add("cut-ngram", &s.cut_ngram, "N", "words in a row that both have are cut out").between(1, 100);
  list.add("frequent", &s.frequent, "N", "but those that FILE has as often stay").between(1);
  list.add("document-share", &s.document_share, "X", "drop a document with this share of its n-grams in the sets");
  return list;
}

void run_corpus(const CorpusSettings& settings, std::string_view stage) {
  if (settings.threads > 0) set_thread_count(static_cast<int>(settings.threads));
  require_free(std::array{settings.out, settings.dropped}, settings.overwrite);
  const double start = monotonic_seconds();
  std::vector<std::unique_ptr<Stage>> stages;
  for (const std::string& name : stage_names(settings, stage)) stages.push_back(known_stage(name)->make(settings));
  std::atomic<double> share{0};
  std::optional<LongTask> told;
  const auto tell_progress = [&] {
    told.emplace(std::string(known_stage(stage)->doing), [&] { return share.load(); });
  };
  tell_progress();
  StreamOptions options{.files = settings.files,
                        .out = settings.out,
                        .dropped = settings.dropped,
                        .format = settings.format,
                        .text_key = settings.json_key,
                        .max_bad_share = settings.max_bad_share,
                        .batch_bytes = settings.batch_bytes,
                        .progress = [&](double done) { share = done; },
                        .settings = settings_by_flag(settings),
                        .journal_seconds = settings.journal_seconds};
  options.also_read = settings.evaluation;
  for (const std::filesystem::path& folder : {settings.tokenizer, settings.url_lists}) {
    if (!folder.empty()) options.also_read.push_back(folder);
  }
  options.tell = [&](std::string_view line) {
    told.reset();  // a terminal has one line for it
    tell_user(line);
    tell_progress();
  };
  EndSignals signals(/*says=*/false);
  if (can_go_on(stages, options)) {
    signals.listen();
    options.end_signal = EndSignals::came;
  }
  const StreamCounts counts = run_stages(stages, options);
  told.reset();
  nlohmann::ordered_json json = json_of(counts, stages);
  json["seconds"] = monotonic_seconds() - start;
  json["peak_memory_bytes"] = peak_memory_bytes();
  const bool dropped_to_output = is_standard_stream(settings.dropped);
  report_beside(dropped_to_output ? settings.dropped : settings.out, settings.json,
                text_of(counts, settings.out, monotonic_seconds() - start),
                json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace teratron

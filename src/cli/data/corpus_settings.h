// The flags that all commands of one stream of documents have in common: what is read and written, and the options of
// every stage, since --then may name any of them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "corpus/stream/stream.h"
#include "options/fields.h"

namespace teratron {

struct CorpusSettings {
  std::vector<std::filesystem::path> files;
  std::filesystem::path out, dropped, json;
  std::string json_key = "text";
  TextFormat format = TextFormat::kAuto;
  double max_bad_share = StreamOptions{}.max_bad_share;
  std::int64_t threads = 0;
  std::int64_t batch_bytes = StreamOptions{}.batch_bytes;
  double journal_seconds = StreamOptions{}.journal_seconds;
  std::vector<std::string> then;

  std::filesystem::path tokenizer, url_lists;
  std::int64_t min_tokens = 128;
  bool keep_newlines = false, no_url_rules = false, overwrite = false;
  std::string url_key = "url";

  std::string html_key = "html";
  std::int64_t least_characters = 100, most_page_bytes = std::int64_t{8} << 20;

  double jaccard = 0.7;
  std::int64_t dedup_ngram = 5;

  std::string language = "en";
  bool keep_unsure = false;

  std::vector<std::filesystem::path> evaluation;
  std::int64_t cut_ngram = 13, frequent = 10;
  double document_share = 0.5;

  // Of a command whose first stage is `stage`.
  Faults faults_of(std::string_view stage) const;
};

FieldList fields_of_corpus(CorpusSettings& settings);

// Runs `stage` and those of --then, and reports what was kept and dropped.
void run_corpus(const CorpusSettings& settings, std::string_view stage);

}  // namespace teratron

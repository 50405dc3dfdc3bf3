#include "cli/data/corpus_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/standard_streams.h"
#include "console/long_task.h"
#include "console/readable.h"
#include "corpus/stream/line_parts.h"
#include "corpus/stream/line_writer.h"
#include "data/data_path.h"
#include "data/indexed/corpus_sidecar.h"
#include "data/text/content.h"

namespace teratron {

namespace {

// Whether `source` is a file of documents, not the PREFIX of a corpus or one of its two files. Pipes count as files:
// the reader refuses them with the reason.
bool is_file_of_documents(const std::string& source) {
  std::error_code none;
  if (is_standard_stream(source) || std::filesystem::is_other(source, none)) return true;
  const std::string ending = content_ending(source);
  if (is_named_json_lines(source) || ending == ".json") return true;
  std::error_code error;
  return ending != ".bin" && ending != ".idx" && std::filesystem::is_regular_file(source, error) &&
         !std::filesystem::exists(source + ".idx", error);
}

}  // namespace

void add_parts_sources_field(FieldList& list, std::vector<std::string>& sources) {
  list.add_positional(
      &sources, "SOURCE",
      "a tokenised corpus: PREFIX of PREFIX.bin and PREFIX.idx, or several; or files of JSON lines, which may "
      "be compressed, or Parquet, of which JSON lines are made");
}

bool name_json_lines(const std::vector<std::string>& sources) {
  return std::ranges::any_of(sources, is_file_of_documents);
}

Faults corpus_parts_faults(const std::vector<std::string>& sources, const std::filesystem::path& out) {
  Faults faults;
  if (name_json_lines(sources)) {
    faults.add_if(!std::ranges::all_of(sources, is_file_of_documents),
                  "some sources are JSON lines, some are not; name only one kind");
    for (const std::string& source : sources) {
      std::error_code error;
      faults.add_if(
          std::filesystem::is_regular_file(source, error) && content_of_file(source).kind == ContentKind::kText,
          "'{}' is plain text, which is one document; name JSON lines, or a corpus made by 'teratron data "
          "tokenize'",
          source);
    }
    if (!faults.empty()) return faults;
    faults.add_if(!out.empty() && !is_named_json_lines(out) && !is_standard_stream(out),
                  "{} is '{}', but the sources are JSON lines; name a file that ends in .jsonl or .jsonl.zst",
                  Flag{"out"}, out.string());
    if (!faults.empty()) return faults;
    const std::string fault = fault_of_line_file(out);
    faults.add_if(!fault.empty(), "{}: {}", Flag{"out"}, fault);
    return faults;
  }
  faults.add_if(!weights_of(sources).empty(),
                "the sources contain a weight, and corpora are read whole here; write a corpus called 7 as ./7");
  faults.add_if(is_standard_stream(out), "{} is two files, and standard output is one; name a PREFIX", Flag{"out"});
  faults.add_if(is_named_json_lines(out), "{} is '{}', but the source is a tokenised corpus; name a PREFIX",
                Flag{"out"}, out.string());
  return faults;
}

PartsSource::PartsSource(const std::vector<std::string>& sources) {
  if (name_json_lines(sources)) {
    files_.assign(sources.begin(), sources.end());
    documents_ = count_lines(files_);
  } else {
    corpus_ = open_copy_source(sources);
    documents_ = corpus_->dataset->documents();
  }
  if (documents_ > 0) return;
  throw_user_error("there are no documents in '{}'{}; nothing was written", sources.front(),
                   sources.size() > 1 ? fmt::format(" and {} more", sources.size() - 1) : "");
}

SizeOfDocument PartsSource::size_in_tokens() const {
  return [dataset = corpus_->dataset](std::int64_t document) { return dataset->document(document).size(); };
}

std::vector<std::filesystem::path> PartsSource::files_written_to(const std::filesystem::path& out) const {
  return corpus_ ? files_of_corpus(out) : std::vector{out};
}

void PartsSource::add_counts(nlohmann::ordered_json& json, const CopiedCorpus& copied) const {
  json["documents"] = copied.documents;
  if (!corpus_) return;
  json["sequences"] = copied.sequences;
  json["tokens"] = copied.tokens;
}

std::vector<CopiedCorpus> PartsSource::copy(const std::vector<std::filesystem::path>& outs,
                                            const std::vector<std::uint8_t>& parts, const std::string& doing) const {
  const std::function<void(double)> progress = show_share(doing);
  if (corpus_) return copy_documents(*corpus_, outs, parts, progress);
  const CopiedLines lines = copy_lines(files_, outs, parts, progress);
  if (lines.faulty > 0) {
    report_to_user(
        fmt::format("note: {} copied that other commands refuse, since they are no JSON objects; the first: {}",
                    counted(lines.faulty, "line"), lines.first_fault));
  }
  std::vector<CopiedCorpus> copied;
  for (std::size_t i = 0; i < outs.size(); ++i) copied.push_back({.prefix = outs[i], .documents = lines.lines[i]});
  return copied;
}

std::string line_of(const CopiedCorpus& copied, std::int64_t of_documents) {
  const std::string documents =
      of_documents > 0 ? fmt::format("{} of {}", readable_integer(copied.documents), counted(of_documents, "document"))
                       : counted(copied.documents, "document");
  return fmt::format("{}{}: {}\n", documents,
                     copied.tokens > 0 ? fmt::format(", {}", counted(copied.tokens, "token")) : "",
                     copied.prefix.string());
}

}  // namespace teratron

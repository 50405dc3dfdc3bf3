// teratron data split: a corpus in parts, by whole documents.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/files/file.h"
#include "base/files/free_place.h"
#include "base/host/monotonic_clock.h"
#include "base/host/resources.h"
#include "cli/commands.h"
#include "cli/data/corpus_parts.h"
#include "cli/report.h"
#include "data/text/content.h"

namespace teratron {
namespace {

enum class ShareUnit { kDocuments, kTokens };

struct NamedPart {
  std::string name;
  double share = 0;
};

struct DataSplitOptions {
  std::vector<std::string> sources, parts;
  std::filesystem::path out, json;
  ShareUnit by = ShareUnit::kDocuments;
  std::int64_t seed = 1234;
  bool overwrite = false;

  Faults faults() const;
};

FieldList fields_of(DataSplitOptions& o) {
  FieldList list;
  add_parts_sources_field(list, o.sources);
  list.add("out", &o.out, "NAME",
           "each part is NAME-part: NAME-train.bin and .idx; for JSON lines NAME ends in .jsonl or .jsonl.zst, and the "
           "part's name comes before that: NAME-train.jsonl")
      .writes(FileContent::kOwn, {"-"})  // where each part's name begins; run() knows the parts
      .required = true;
  add_overwrite_field(list, o.overwrite);
  list.add("parts", &o.parts, "NAME=SHARE", "train=0.98,valid=0.01,test=0.01; shares of their sum").required = true;
  list.add_choice("by", o.by, {{"documents", ShareUnit::kDocuments}, {"tokens", ShareUnit::kTokens}},
                  "the unit of shares; each part is off by one document at most");
  list.add("seed", &o.seed, "N", "seed of the draw").between(0);
  add_json_field(list, o.json);
  return list;
}

// Nothing if a word is not NAME=SHARE, or NAME is no part of a file name.
std::optional<NamedPart> part_in(std::string_view word) {
  const std::size_t sign = word.find('=');
  if (sign == 0 || sign == std::string_view::npos) return std::nullopt;
  const std::string_view number = word.substr(sign + 1);
  NamedPart part{.name = std::string(word.substr(0, sign))};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), part.share);
  const bool is_number = error == std::errc() && end == number.data() + number.size() && std::isfinite(part.share);
  if (!is_number || part.share <= 0 || part.name.find_first_of("/ ") != std::string::npos) return std::nullopt;
  return part;
}

std::vector<std::string> part_words(const std::vector<std::string>& flags) {
  std::vector<std::string> words;
  for (const std::string& flag : flags) {
    for (std::size_t begin = 0; begin <= flag.size();) {
      const std::size_t end = std::min(flag.find(',', begin), flag.size());
      words.push_back(flag.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return words;
}

Faults DataSplitOptions::faults() const {
  Faults faults = corpus_parts_faults(sources, out);
  faults.add_if(by == ShareUnit::kTokens && name_json_lines(sources),
                "{} tokens needs a tokenised corpus, and these are JSON lines; leave it out, or tokenise first",
                Flag{"by"});
  faults.add_if(is_standard_stream(out),
                "{} is several files, and standard output is one; name a PREFIX or a .jsonl file", Flag{"out"});
  std::vector<std::string> names;
  for (const std::string& word : part_words(parts)) {
    const std::optional<NamedPart> part = part_in(word);
    faults.add_if(
        !part,
        "{} contains '{}', which is not NAME=SHARE with a share above 0; for example train=0.98,valid=0.01,test=0.01",
        Flag{"parts"}, word);
    if (!part) continue;
    faults.add_if(std::ranges::count(names, part->name) == 1, "{} names '{}' twice", Flag{"parts"}, part->name);
    names.push_back(part->name);
  }
  constexpr std::size_t kMostParts = 255;
  faults.add_if(names.size() > kMostParts, "{} names {} parts; there are at most {}", Flag{"parts"}, names.size(),
                kMostParts);
  return faults;
}

// The part's name comes before the ending of a file of JSON lines.
std::filesystem::path path_of_part(const std::filesystem::path& out, const std::string& part, bool is_lines) {
  const std::string whole = out.string();
  const std::size_t stem = is_lines ? ascii_lower(whole).rfind(content_ending(out)) : whole.size();
  return whole.substr(0, stem) + "-" + part + whole.substr(stem);
}

void run(const DataSplitOptions& options) {
  const double start = monotonic_seconds();
  const PartsSource source(options.sources);
  std::vector<double> shares;
  std::vector<std::filesystem::path> outs;
  std::vector<NamedPart> named;
  for (const std::string& word : part_words(options.parts)) {
    const NamedPart& part = named.emplace_back(*part_in(word));
    shares.push_back(part.share);
    outs.push_back(path_of_part(options.out, part.name, name_json_lines(options.sources)));
  }
  const std::vector<std::uint8_t> parts =
      choose_parts(source.documents(), shares, static_cast<std::uint64_t>(options.seed),
                   options.by == ShareUnit::kTokens ? source.size_in_tokens() : SizeOfDocument{});
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (std::ranges::find(parts, i) != parts.end()) continue;
    throw_user_error("{} cannot fill all parts: '{}' with share {} would be empty; give it a larger share",
                     counted(source.documents(), "document"), named[i].name, named[i].share);
  }
  std::vector<std::filesystem::path> written = {options.json};
  for (const std::filesystem::path& out : outs) {
    const std::vector<std::filesystem::path> files = source.files_written_to(out);
    require_free(files, options.overwrite);
    written.insert(written.end(), files.begin(), files.end());
  }
  require_separate({}, written);
  std::string text;
  nlohmann::ordered_json json = {{"documents", source.documents()}, {"parts", nlohmann::ordered_json::array()}};
  const std::vector<CopiedCorpus> copied = source.copy(outs, parts, "splitting");
  for (std::size_t i = 0; i < copied.size(); ++i) {
    text += line_of(copied[i]);
    nlohmann::ordered_json part = {{"name", named[i].name}, {"path", copied[i].prefix.string()}};
    source.add_counts(part, copied[i]);
    json["parts"].push_back(std::move(part));
  }
  json["seconds"] = monotonic_seconds() - start;
  json["peak_memory_bytes"] = peak_memory_bytes();
  report(options.json, text, json);
}

}  // namespace

Command data_split_command() {
  return make_command<DataSplitOptions>("data split", "cuts a corpus into parts by whole documents", run);
}

}  // namespace teratron

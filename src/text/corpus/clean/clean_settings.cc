#include "corpus/clean/clean_settings.h"

#include "base/error.h"
#include "corpus/clean/clean_stage.h"

namespace teratron {

void CleanSettings::add_fields(FieldList& list) {
  list.add("tokenizer", &tokenizer, "DIR", "folder with the files of the tokenizer that tokens are counted with");
  list.add("min-tokens", &min_tokens, "N", "drop documents with fewer tokens").between(0);
  list.add("keep-newlines", &keep_newlines, "", "leave line ends inside of sentences and empty lines as they are");
  list.add("url-key", &url_key, "KEY", "the URL of a .jsonl line is under this key");
  list.add("url-lists", &url_lists, "DIR", "domains.txt and extensions.txt of documents to drop; else those installed");
  list.add("no-url-rules", &no_url_rules, "", "do not look at URLs");
}

Faults CleanSettings::faults(bool runs) const {
  Faults faults;
  faults.add_if(runs && min_tokens > 0 && tokenizer.empty(),
                "{} has the tokens of a document counted; name the tokenizer's folder with {}, or give 0",
                Flag{"min-tokens"}, Flag{"tokenizer"});
  return faults;
}

std::vector<std::filesystem::path> CleanSettings::files_read() const {
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& folder : {tokenizer, url_lists}) {
    if (!folder.empty()) files.push_back(folder);
  }
  return files;
}

std::unique_ptr<Stage> CleanSettings::make(const StreamOptions&) const {
  CleanOptions options{.min_tokens = min_tokens, .keep_newlines = keep_newlines, .url_key = url_key};
  if (min_tokens > 0) options.tokenizer = Tokenizer::load(tokenizer);
  if (!no_url_rules) {
    const std::filesystem::path lists = url_lists.empty() ? installed_url_lists() : url_lists;
    if (lists.empty()) {
      throw_user_error(
          "the lists of domains and endings that come with teratron are not where they were installed; name "
          "a folder with --url-lists, or leave the rules about URLs out with --no-url-rules");
    }
    options.url_rules.emplace(lists);
  }
  return make_clean_stage(std::move(options));
}

}  // namespace teratron

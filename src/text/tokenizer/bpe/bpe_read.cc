// GPT-2's pair of files: a JSON object of tokens and ids, and a text file with a merge a line.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

std::vector<ListedToken> read_vocabulary(const fs::path& path) {
  simdjson::dom::parser parser;
  return read_json_vocabulary(read_json_object(path, parser, "a JSON object of tokens and ids"),
                              fmt::format("'{}'", path.string()));
}

std::vector<BpeSource::Merge> read_merges(const fs::path& path) {
  const std::string content = without_mark(read_file(path));
  std::vector<BpeSource::Merge> merges;
  std::string_view rest = content;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    const bool is_pair = space != line.npos && space > 0 && space + 1 < line.size();
    if (!is_pair || line.find(' ', space + 1) != line.npos) {
      throw_user_error("'{}', line {}: two tokens with a space between them are needed, this is '{}'", path.string(),
                       number, line.substr(0, 80));
    }
    merges.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1)), number});
  }
  return merges;
}

}  // namespace

BpeModel read_vocabulary_and_merges(const fs::path& vocabulary, const fs::path& merges) {
  BpeSource source;
  source.vocabulary = read_vocabulary(vocabulary);
  source.merges = read_merges(merges);
  source.vocabulary_file = fmt::format("'{}'", vocabulary.string());
  source.merges_file = fmt::format("'{}'", merges.string());
  source.merge_unit = "line";
  const TokenizerConfig config(vocabulary.parent_path());
  take_config(config, source, /*is_pair=*/true);
  BpeModel model = build_bpe_model(source);
  config.require_tokens(model.tokens);
  return model;
}

}  // namespace teratron

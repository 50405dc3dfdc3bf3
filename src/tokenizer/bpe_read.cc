// GPT-2's pair of files: a JSON object of tokens and ids, and a text file with a merge a line.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "tokenizer/bpe_files.h"

namespace teratron {
namespace {

namespace fs = std::filesystem;

struct PairNames {
  const char *vocabulary, *merges;
};
constexpr std::array<PairNames, 2> kPairs = {{{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}};

// Without an exception where a parent folder may not be looked into.
bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::vector<BpeSource::Token> read_vocabulary(const fs::path& path) {
  const std::string content = read_file(path);
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  if (const auto error = parser.parse(content).get(object)) {
    throw_user_error("'{}' is not a JSON object of tokens and ids: {}", path.string(), simdjson::error_message(error));
  }
  std::vector<BpeSource::Token> tokens;
  for (const auto [text, value] : object) {
    std::int64_t id = 0;
    if (value.get(id)) throw_user_error("'{}': the id of token '{}' is not a whole number", path.string(), text);
    tokens.push_back({std::string(text), id});
  }
  return tokens;
}

std::vector<BpeSource::Merge> read_merges(const fs::path& path) {
  const std::string content = read_file(path);
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
  return build_bpe_model(source);
}

BpeModel read_bpe_model(const fs::path& path) {
  if (!is_there(path)) {
    throw_user_error("no tokenizer at '{}': there is no such file or folder; check the path", path.string());
  }
  if (!fs::is_directory(path)) {
    for (const PairNames& pair : kPairs) {
      if (path.filename() != pair.vocabulary && path.filename() != pair.merges) continue;
      return read_vocabulary_and_merges(path.parent_path() / pair.vocabulary, path.parent_path() / pair.merges);
    }
    return read_tokenizer_json(path);
  }
  if (is_there(path / "tokenizer.json")) return read_tokenizer_json(path / "tokenizer.json");
  for (const PairNames& pair : kPairs) {
    if (!is_there(path / pair.vocabulary) && !is_there(path / pair.merges)) continue;
    return read_vocabulary_and_merges(path / pair.vocabulary, path / pair.merges);
  }
  throw_user_error(
      "no byte-level BPE tokenizer in '{}': it needs tokenizer.json, or vocab.json with merges.txt, or encoder.json "
      "with "
      "vocab.bpe",
      path.string());
}

}  // namespace teratron

// Reads byte-level BPE: GPT-2's pair of files and the settings beside them; checks their content and makes a model of
// it.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/byte_alphabet.h"
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

namespace {

// Classes with GPT-2's splitter and merges, which add nothing to a text.
constexpr auto kBytePairClasses =
    std::to_array<std::string_view>({"GPT2Tokenizer", "CodeGenTokenizer", "GPTNeoXTokenizer"});

}  // namespace

void take_added_tokens(std::vector<AddedToken> added, std::string_view file, BpeSource& source) {
  for (AddedToken& one : added) {
    const std::string& text = one.token.text;
    if (!one.refused.empty()) {
      throw_user_error("{}: its added token '{}' sets \"{}\", which changes the text around it; {}", file, text,
                       one.refused, "use a tokenizer without");
    }
    if (!one.is_special && !is_written_like_a_special_token(text)) {
      throw_user_error("{}: its added token '{}' is not special, and transformers finds it within words; {}", file,
                       text, "use a tokenizer without");
    }
    const bool is_known =
        std::ranges::any_of(source.added, [&](const ListedToken& token) { return token.text == text; });
    if (!is_known) source.added.push_back(std::move(one.token));
  }
}

void take_config(const TokenizerConfig& config, BpeSource& source, bool is_pair) {
  config.require_class(kBytePairClasses);
  // transformers' classes of this kind override the prefix space of tokenizer.json; its general ones do not.
  if (is_pair || config.is_of_class(kBytePairClasses)) {
    source.add_prefix_space = config.flag("add_prefix_space").value_or(false);
  }
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    if (is_pair && config.flag(key).value_or(false)) {
      config.refuse(fmt::format("its \"{}\" adds a token to every text; set it to false", key));
    }
  }
  take_added_tokens(config.added_tokens(), config.name(), source);
  if (std::string end = config.special_text("eos_token"); !end.empty()) source.end_of_text = std::move(end);
}

namespace {

using IdOf = std::unordered_map<std::string_view, std::int32_t>;

BpeMerge resolve(const BpeSource::Merge& merge, const IdOf& id_of, const BpeSource& source) {
  const auto id = [&](const std::string& text) {
    const auto found = id_of.find(text);
    if (found == id_of.end()) {
      throw_user_error(
          "{}, {} {}: the vocabulary and the merges disagree: '{}' is not in {}; are both from the same "
          "tokenizer, and complete?",
          source.merges_file, source.merge_unit, merge.number, text, source.vocabulary_file);
    }
    return found->second;
  };
  return {id(merge.left), id(merge.right), id(merge.left + merge.right)};
}

}  // namespace

BpeModel build_bpe_model(const BpeSource& source) {
  const std::vector<std::string_view> texts = texts_by_id(source.vocabulary, source.added, source.vocabulary_file);
  IdOf id_of;
  for (std::size_t id = 0; id < texts.size(); ++id) id_of.emplace(texts[id], static_cast<std::int32_t>(id));

  BpeModel model{.add_prefix_space = source.add_prefix_space, .end_of_text = source.end_of_text};
  std::vector<bool> is_made(texts.size());
  for (const BpeSource::Merge& merge : source.merges) {
    model.merges.push_back(resolve(merge, id_of, source));
    is_made[static_cast<std::size_t>(model.merges.back().merged)] = true;
  }
  std::vector<bool> is_added(texts.size());
  for (const ListedToken& token : source.added) is_added[static_cast<std::size_t>(token.id)] = true;

  for (std::size_t id = 0; id < texts.size(); ++id) {
    const std::string_view text = texts[id];
    const std::optional<std::string> bytes = from_alphabet(text);
    const bool is_byte = bytes && bytes->size() == 1;
    if (is_added[id] && (is_made[id] || is_byte)) {
      throw_user_error(
          "{}: added token '{}' is an ordinary token of the vocabulary too, which transformers would find within "
          "words; "
          "leave it out of the added tokens",
          source.vocabulary_file, text);
    }
    if (!is_made[id] && !is_byte && (is_added[id] || is_written_like_a_special_token(text))) {
      model.special.push_back(static_cast<std::int32_t>(id));
      model.tokens.emplace_back(text);
    } else if (bytes) {
      model.tokens.push_back(*bytes);
    } else {
      throw_user_error(
          "{}: token '{}' (id {}) has characters that stand for no byte; this is not a byte-level "
          "vocabulary as GPT-2's is",
          source.vocabulary_file, text, id);
    }
  }
  validate(model, source.vocabulary_file);
  return model;
}

}  // namespace teratron

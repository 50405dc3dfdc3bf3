// Reads GPT-2's pair of files and the settings beside them; makes a model of a checked source.
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "tokenizer/bpe/bpe_files.h"
#include "tokenizer/bpe/byte_alphabet.h"
#include "tokenizer/bpe/roberta.h"
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
  require_tokens_of_class(config, model);
  return model;
}

namespace {

// Classes with GPT-2's splitter and merges, which add nothing to a text.
constexpr auto kBytePairClasses =
    std::to_array<std::string_view>({"GPT2Tokenizer", "CodeGenTokenizer", "GPTNeoXTokenizer", "RobertaTokenizer"});
// Further ones, whose pipeline tokenizer.json describes.
constexpr auto kJsonClasses = std::to_array<std::string_view>(
    {"GPT2Tokenizer", "CodeGenTokenizer", "GPTNeoXTokenizer", "RobertaTokenizer", "Qwen2Tokenizer", "LlamaTokenizer"});

// Whether transformers would find the token elsewhere than in the text as it is.
bool is_changed_by_normalizer(const AddedToken& added, const BpePipeline& pipeline) {
  if (!added.is_normalized || added.token.text.find_first_not_of(' ') == std::string::npos) return false;
  return pipeline.nfc || pipeline.prefix == BpePrefix::kAlways;
}

// Whether a token that is not special is found in every text: a run of spaces, as GPT-NeoX has.
bool is_found_in_text(const AddedToken& added, const BpePipeline& pipeline) {
  return !added.is_special && added.token.text.find_first_not_of(' ') == std::string::npos &&
         pipeline.prefix == BpePrefix::kNever && !pipeline.is_sentence_piece();
}

}  // namespace

void take_added_tokens(std::vector<AddedToken> added, std::string_view file, BpeSource& source) {
  for (AddedToken& one : added) {
    const std::string& text = one.token.text;
    const bool is_mask = text == kRobertaMask && one.refused == "lstrip" && one.is_special;  // bpe/roberta.h
    if (!one.refused.empty() && !is_mask) {
      throw_user_error("{}: its added token '{}' sets \"{}\", which changes the text around it; {}", file, text,
                       one.refused, "use a tokenizer without");
    }
    if (is_changed_by_normalizer(one, source.pipeline)) {
      throw_user_error("{}: its added token '{}' sets \"normalized\", which finds it in a changed text; {}", file, text,
                       "set it to false");
    }
    const bool is_found = is_found_in_text(one, source.pipeline);
    if (!one.is_special && !is_found && !is_written_like_a_special_token(text)) {
      throw_user_error("{}: its added token '{}' is not special, and transformers finds it within words; {}", file,
                       text, "use a tokenizer without");
    }
    const bool is_known =
        std::ranges::any_of(source.added, [&](const ListedToken& token) { return token.text == text; });
    if (is_known) continue;
    if (is_found) source.found.push_back(one.token.id);
    source.added.push_back(std::move(one.token));
  }
}

void require_tokens_of_class(const TokenizerConfig& config, const BpeModel& model) {
  if (!config.is_of_class(std::to_array<std::string_view>({"RobertaTokenizer"})) || roberta_tokens(model)) return;
  config.refuse("its class frames texts by <s> and </s>, and the vocabulary lacks one of these, <pad> and <mask>");
}

void take_config(const TokenizerConfig& config, BpeSource& source, bool is_pair) {
  BpePipeline& pipeline = source.pipeline;
  is_pair ? config.require_class(kBytePairClasses) : config.require_class(kJsonClasses);
  const std::optional<bool> adds_space = config.flag("add_prefix_space");
  // transformers' classes of GPT-2's kind override the prefix space of tokenizer.json; its general ones do not.
  if (pipeline.splitter == BpeSplitter::kGpt2 && (is_pair || config.is_of_class(kBytePairClasses))) {
    pipeline.prefix = adds_space.value_or(false) ? BpePrefix::kUnlessSpace : BpePrefix::kNever;
  } else if (config.is_of_class(kJsonClasses) && adds_space && *adds_space != (pipeline.prefix != BpePrefix::kNever)) {
    config.refuse("its \"add_prefix_space\" contradicts tokenizer.json; set it to null");
  }
  const bool is_llama = config.is_of_class(std::to_array<std::string_view>({"LlamaTokenizer"}));
  for (const char* key : {"add_bos_token", "add_eos_token"}) {
    const bool is_refused = is_pair || (is_llama && key == std::string_view("add_eos_token"));
    if (is_refused && config.flag(key).value_or(false)) {
      config.refuse(fmt::format("its \"{}\" adds a token to every text; set it to false", key));
    }
  }
  if (is_llama && !config.flag("add_bos_token").value_or(true)) pipeline.beginning.clear();
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

// The byte that "<0x0A>" names; nullopt for other texts.
std::optional<char> byte_of(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  if (error != std::errc() || end != text.data() + 5) return std::nullopt;
  return static_cast<char>(byte);
}

// The bytes that a token of the vocabulary stands for; nullopt if one of its characters stands for none.
std::optional<std::string> bytes_of_token(std::string_view text, const BpePipeline& pipeline) {
  if (!pipeline.is_sentence_piece()) return from_alphabet(text);
  if (text.find(' ') != std::string_view::npos) return std::nullopt;
  if (const std::optional<char> byte = byte_of(text)) return std::string(1, *byte);
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_space = text.substr(at).starts_with(kSpaceSign);
    bytes += is_space ? ' ' : text[at];
    at += is_space ? kSpaceSign.size() : 1;
  }
  return bytes;
}

// Finds the tokens <0x00> to <0xFF> of SentencePiece's bytes. UserError: one is missing.
void take_byte_tokens(const std::vector<std::string_view>& texts, const BpeSource& source, BpeModel& model) {
  if (!source.pipeline.is_sentence_piece()) return;
  model.byte_tokens.assign(256, -1);
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const std::optional<char> byte = byte_of(texts[id]);
    if (byte) model.byte_tokens[static_cast<unsigned char>(*byte)] = static_cast<std::int32_t>(id);
  }
  const auto missing = std::ranges::find(model.byte_tokens, -1);
  if (missing == model.byte_tokens.end()) return;
  refuse_bpe(source.vocabulary_file, fmt::format("its model sets \"byte_fallback\" and has no token <0x{:02X}>",
                                                 missing - model.byte_tokens.begin()));
}

}  // namespace

BpeModel build_bpe_model(const BpeSource& source) {
  const std::vector<std::string_view> texts = texts_by_id(source.vocabulary, source.added, source.vocabulary_file);
  IdOf id_of;
  for (std::size_t id = 0; id < texts.size(); ++id) id_of.emplace(texts[id], static_cast<std::int32_t>(id));

  BpeModel model{.end_of_text = source.end_of_text, .pipeline = source.pipeline};
  std::vector<bool> is_made(texts.size()), is_added(texts.size()), is_found(texts.size());
  for (const BpeSource::Merge& merge : source.merges) {
    model.merges.push_back(resolve(merge, id_of, source));
    is_made[static_cast<std::size_t>(model.merges.back().merged)] = true;
  }
  for (const ListedToken& token : source.added) is_added[static_cast<std::size_t>(token.id)] = true;
  for (const std::int64_t id : source.found) is_found[static_cast<std::size_t>(id)] = true;
  take_byte_tokens(texts, source, model);

  for (std::size_t id = 0; id < texts.size(); ++id) {
    const std::string_view text = texts[id];
    const std::optional<std::string> bytes = bytes_of_token(text, source.pipeline);
    const bool is_byte = source.pipeline.is_sentence_piece() ? byte_of(text).has_value() : bytes && bytes->size() == 1;
    if (is_added[id] && (is_made[id] || is_byte)) {
      throw_user_error(
          "{}: added token '{}' is an ordinary token of the vocabulary too, which transformers would find within "
          "words; "
          "leave it out of the added tokens",
          source.vocabulary_file, text);
    }
    if (!is_made[id] && !is_byte && (is_added[id] || is_written_like_a_special_token(text))) {
      (is_found[id] ? model.found : model.special).push_back(static_cast<std::int32_t>(id));
      model.tokens.emplace_back(text);
    } else if (bytes) {
      model.tokens.push_back(*bytes);
    } else {
      throw_user_error("{}: token '{}' (id {}) has characters that stand for no byte; this is not {}",
                       source.vocabulary_file, text, id,
                       source.pipeline.is_sentence_piece() ? "SentencePiece's vocabulary, which has ▁ for spaces"
                                                           : "a byte-level vocabulary as GPT-2's is");
    }
  }
  validate(model, source.vocabulary_file);
  return model;
}

}  // namespace teratron

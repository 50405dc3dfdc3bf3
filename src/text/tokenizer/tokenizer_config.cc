#include "tokenizer/tokenizer_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "base/error.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocabulary.h"

namespace teratron {
namespace {

namespace dom = simdjson::dom;

constexpr auto kSpecialKeys = std::to_array<const char*>(
    {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"});
constexpr auto kSpecialLists = std::to_array<const char*>({"additional_special_tokens", "extra_special_tokens"});
// Classes that follow the files' settings.
constexpr auto kGeneralClasses =
    std::to_array<std::string_view>({"PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"});

// Reads a token: a text, or an object with the text.
std::string token_text(const dom::element& value) {
  std::string_view plain;
  return std::string(value.get(plain) ? text_or(value["content"], "") : plain);
}

}  // namespace

TokenizerConfig::File::File(const std::filesystem::path& path) : name(fmt::format("'{}'", path.string())) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  root = read_json_object(path, parser, "a JSON object of settings");
  is_there = true;
}

TokenizerConfig::TokenizerConfig(const std::filesystem::path& folder)
    : config_(folder / "tokenizer_config.json"),
      map_(folder / "special_tokens_map.json"),
      added_(folder / "added_tokens.json") {}

std::optional<bool> TokenizerConfig::flag(const char* key) const {
  dom::element value;
  bool flag = false;
  if (!config_.is_there || config_.root[key].get(value) || value.is_null()) return std::nullopt;
  if (value.get(flag)) throw_user_error("{}: \"{}\" is neither true nor false", config_.name, key);
  return flag;
}

std::string TokenizerConfig::special_text(const char* key) const {
  // The map counts first, unless the configuration declares the tokens, and so is the newer one.
  const bool is_newer = config_.is_there && !config_.root["added_tokens_decoder"].error();
  for (const File* file : {is_newer ? &config_ : &map_, is_newer ? &map_ : &config_}) {
    dom::element value;
    if (!file->is_there || file->root[key].get(value)) continue;
    if (std::string text = token_text(value); !text.empty()) return text;
  }
  return "";
}

std::map<std::string, std::string> TokenizerConfig::special_texts() const {
  std::map<std::string, std::string> texts;
  for (const char* key : kSpecialKeys) {
    if (std::string text = special_text(key); !text.empty()) texts.emplace(key, std::move(text));
  }
  if (!config_.is_there) return texts;
  const auto add = [&](std::string_view key, const dom::element& value) {
    if (std::string text = token_text(value); !text.empty()) texts.emplace(key, std::move(text));
  };
  for (const auto [key, value] : config_.root) {
    if (key.ends_with("_token")) add(key, value);
  }
  dom::object names;
  if (config_.root["extra_special_tokens"].get(names)) return texts;
  for (const auto [key, value] : names) add(key, value);
  return texts;
}

std::string_view TokenizerConfig::tokenizer_class() const {
  return config_.is_there ? text_or(config_.root["tokenizer_class"], "") : "";
}

std::vector<TokenizerConfig::NamedToken> TokenizerConfig::special_tokens() const {
  std::vector<NamedToken> tokens;
  for (const char* key : kSpecialKeys) {
    if (std::string text = special_text(key); !text.empty()) tokens.push_back({key, std::move(text)});
  }
  for (const File* file : {&config_, &map_}) {
    for (const char* key : kSpecialLists) {
      dom::array list;
      dom::object names;
      if (!file->is_there) continue;
      if (!file->root[key].get(list)) {
        for (const dom::element& one : list) tokens.push_back({key, token_text(one)});
      } else if (!file->root[key].get(names)) {
        for (const auto [name, one] : names) tokens.push_back({key, token_text(one)});
      }
    }
  }
  return tokens;
}

bool TokenizerConfig::is_special(std::string_view text) const {
  return std::ranges::any_of(special_tokens(), [&](const NamedToken& token) { return token.text == text; });
}

std::vector<AddedToken> TokenizerConfig::added_tokens() const {
  std::vector<AddedToken> tokens;
  const auto throw_no_id = [](const File& file, std::string_view text) {
    throw_user_error("{}: added token '{}' needs an id that is a whole number, and a text", file.name, text);
  };
  dom::object declared;
  if (config_.is_there && !config_.root["added_tokens_decoder"].get(declared)) {
    for (const auto [id_text, token] : declared) {
      std::int64_t id = 0;
      const auto [end, error] = std::from_chars(id_text.data(), id_text.data() + id_text.size(), id);
      const std::string text = token_text(token);
      if (error != std::errc() || end != id_text.data() + id_text.size() || text.empty()) {
        throw_no_id(config_, id_text);
      }
      tokens.push_back(added_token(token, {text, id}));
    }
  }
  if (!added_.is_there) return tokens;
  for (const auto [text, value] : added_.root) {
    std::int64_t id = 0;
    if (value.get(id) || text.empty()) throw_no_id(added_, text);
    const bool is_known = std::ranges::any_of(tokens, [&](const AddedToken& one) { return one.token.text == text; });
    if (!is_known) tokens.push_back({{std::string(text), id}, is_special(text), {}});
  }
  return tokens;
}

bool TokenizerConfig::is_of_class(std::span<const std::string_view> known) const {
  const std::string_view whole = tokenizer_class();
  const std::string_view name = whole.ends_with("Fast") ? whole.substr(0, whole.size() - 4) : whole;
  return std::ranges::find(known, name) != known.end();
}

void TokenizerConfig::require_class(std::span<const std::string_view> known) const {
  const std::string_view whole = tokenizer_class();
  if (whole.empty() || std::ranges::find(kGeneralClasses, whole) != kGeneralClasses.end()) return;
  if (!is_of_class(known)) {
    refuse(fmt::format("its tokenizer_class is {}, and these are read: {}; use one of their kind", whole,
                       fmt::join(known, ", ")));
  }
}

void TokenizerConfig::require_tokens(std::span<const std::string> tokens) const {
  for (const NamedToken& special : special_tokens()) {
    if (!is_written_like_a_special_token(special.text)) {
      refuse(fmt::format("its {} '{}' is written as ordinary text is, and transformers finds it within words",
                         special.key, special.text));
    }
    if (std::ranges::find(tokens, special.text) != tokens.end()) continue;
    refuse(fmt::format("its {} '{}' is not in the vocabulary, and transformers would add it; {}", special.key,
                       special.text, kSaveAsJson));
  }
}

void TokenizerConfig::refuse(std::string_view why) const {
  throw_user_error("{} describes another tokenizer than those supported: {}", name(), why);
}

const std::string& TokenizerConfig::name() const {
  return config_.is_there ? config_.name : added_.is_there ? added_.name : map_.name;
}

}  // namespace teratron

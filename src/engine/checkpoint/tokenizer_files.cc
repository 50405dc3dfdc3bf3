#include "checkpoint/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_fields.h"

namespace teratron {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kNames = {"vocab.json",
                                                    "encoder.json",
                                                    "merges.txt",
                                                    "vocab.bpe",
                                                    "vocab.txt",
                                                    "tokenizer.json",
                                                    "tokenizer_config.json",
                                                    "special_tokens_map.json",
                                                    "added_tokens.json"};

// Files beside a tokenizer's that change no text's tokens.
constexpr std::array<std::string_view, 2> kChatNames = {"chat_template.jinja", "generation_config.json"};

void add_files(const fs::path& folder, std::span<const std::string_view> names, FileContents& files) {
  std::error_code error;
  for (const std::string_view name : names) {
    if (fs::is_regular_file(folder / name, error)) files.emplace(name, read_file(folder / name));
  }
}

constexpr std::string_view kMoreBegin = "chat_template.", kMoreEnd = ".jinja";

bool is_template(std::string_view name) { return name.starts_with(kMoreBegin) && name.ends_with(kMoreEnd); }

void add_templates(const fs::path& folder, FileContents& files) {
  std::error_code error;
  for (const std::string& begin : {std::string(kMoreBegin), std::string()}) {
    const fs::path place = begin.empty() ? folder : folder / kMoreTemplates;
    for (const fs::directory_entry& entry : fs::directory_iterator(place, error)) {
      const std::string name = begin + entry.path().filename().string();
      if (is_template(name) && entry.is_regular_file(error)) files.emplace(name, read_file(entry.path()));
    }
  }
}

// Makes generation_config.json, where there is none, of the ends of texts that the model's config.json names.
void add_ends(const fs::path& folder, FileContents& files) {
  std::error_code error;
  if (files.contains("generation_config.json") || !fs::is_regular_file(folder / "config.json", error)) return;
  const Json config = parse_fitted<Json>(read_file(folder / "config.json"));
  if (!config.is_object()) return;
  // With such a file, transformers takes none of these from config.json.
  Json ids = Json::object();
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const Json id = config.value(key, Json());
    if (id.is_number_integer() || id.is_array()) ids[key] = id;
  }
  if (ids.contains("eos_token_id")) files.emplace("generation_config.json", ids.dump() + "\n");
}

std::optional<std::int64_t> id_in(const Json& vocabulary, std::string_view token) {
  if (!vocabulary.is_object()) return std::nullopt;
  const auto found = vocabulary.find(token);
  if (found == vocabulary.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<std::int64_t>();
}

// tokenizer.json lists special tokens apart; some writers have them in the vocabulary too.
std::optional<std::int64_t> id_in_tokenizer_json(const Json& json, std::string_view content) {
  const Json added = json.value("added_tokens", Json::array());
  for (const Json& token : added) {
    if (token.is_object() && token.contains("content") && token["content"] == content && token.contains("id") &&
        token["id"].is_number_unsigned()) {
      return token["id"].get<std::int64_t>();
    }
  }
  const Json model = json.value("model", Json::object());
  return model.is_object() && model.contains("vocab") ? id_in(model["vocab"], content) : std::nullopt;
}

// Line of a token in a vocabulary with a token in each line, counted from 0.
std::optional<std::int64_t> line_of(std::string_view text, std::string_view token) {
  for (std::int64_t line = 0; !text.empty(); ++line) {
    const std::string_view content = text.substr(0, text.find('\n'));
    if (content == token || (content.ends_with('\r') && content.substr(0, content.size() - 1) == token)) return line;
    text.remove_prefix(std::min(content.size() + 1, text.size()));
  }
  return std::nullopt;
}

}  // namespace

FileContents find_tokenizer_files(const fs::path& folder) {
  FileContents files;
  add_files(folder, kNames, files);
  if (files.empty()) return files;
  add_files(folder, kChatNames, files);
  add_templates(folder, files);
  add_ends(folder, files);
  return files;
}

bool holds_tokenizer(const fs::path& folder) {
  std::error_code error;
  return std::ranges::any_of(std::array{"tokenizer.json", "vocab.json", "encoder.json", "vocab.txt"},
                             [&](const char* name) { return fs::exists(folder / name, error); });
}

std::string place_in_hugging_face(const std::string& name) {
  return is_template(name) && name.size() > kMoreBegin.size() + kMoreEnd.size()
             ? std::string(kMoreTemplates) + name.substr(kMoreBegin.size())
             : name;
}

FileContents read_tokenizer_files(const fs::path& folder_or_file) {
  std::error_code error;
  if (fs::is_regular_file(folder_or_file, error)) {
    const std::string name = folder_or_file.filename().string();
    if (name == "tokenizer.json") return {{name, read_file(folder_or_file)}};
    if (std::ranges::find(kNames, name) != kNames.end()) {
      // It is one of several files, and tokenizer.json would be preferred to it.
      FileContents files = find_tokenizer_files(folder_or_file.parent_path());
      files.erase("tokenizer.json");
      return files;
    }
  }
  FileContents files = find_tokenizer_files(folder_or_file);
  if (files.empty()) {
    throw_user_error(
        "there is no tokenizer in '{}': tokenizer.json, vocab.json with merges.txt, or vocab.txt is needed",
        folder_or_file.string());
  }
  return files;
}

bool are_same_tokenizer(FileContents a, FileContents b) {
  for (FileContents* files : {&a, &b}) {
    std::erase_if(*files, [](const auto& file) {
      return is_template(file.first) || std::ranges::find(kChatNames, file.first) != kChatNames.end();
    });
  }
  return a == b;
}

std::optional<std::int64_t> special_token_id(const FileContents& files, std::string_view token) {
  for (const std::string_view name : {"tokenizer.json", "vocab.json", "encoder.json"}) {
    const auto file = files.find(std::string(name));
    if (file == files.end()) continue;
    const Json json = parse_json_object(file->second, file->first);
    const auto id = name == "tokenizer.json" ? id_in_tokenizer_json(json, token) : id_in(json, token);
    if (id) return id;
  }
  const auto lines = files.find("vocab.txt");
  return lines == files.end() ? std::nullopt : line_of(lines->second, token);
}

}  // namespace teratron

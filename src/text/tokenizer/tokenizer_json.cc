#include "tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/json_fields.h"

namespace teratron {

namespace dom = simdjson::dom;

std::string_view type_of_step(dom::object root, const char* step) {
  dom::element value;
  if (root[step].get(value) || value.is_null()) return {};
  return text_or(value["type"], "of unknown type");
}

std::vector<ListedToken> read_json_vocabulary(dom::object vocabulary, std::string_view file) {
  std::vector<ListedToken> tokens;
  for (const auto [text, value] : vocabulary) {
    std::int64_t id = 0;
    if (value.get(id)) throw_user_error("{}: the id of token '{}' is not a whole number", file, text);
    tokens.push_back({std::string(text), id});
  }
  return tokens;
}

AddedToken added_token(dom::element object, ListedToken token) {
  AddedToken added{std::move(token), is_true(object["special"], false), {}};
  added.is_normalized = is_true(object["normalized"], !added.is_special);
  for (const char* option : {"lstrip", "rstrip", "single_word"}) {
    if (is_true(object[option], false)) added.refused = option;
  }
  return added;
}

std::vector<AddedToken> read_added_tokens(dom::object root, std::string_view file) {
  std::vector<AddedToken> tokens;
  dom::array added;
  if (root["added_tokens"].get(added)) return tokens;
  for (const dom::element token : added) {
    std::int64_t id = 0;
    const std::string_view text = text_or(token["content"], "");
    if (text.empty() || token["id"].get(id)) {
      throw_user_error("{}: an added token needs a \"content\" that is not empty and an \"id\"", file);
    }
    tokens.push_back(added_token(token, {std::string(text), id}));
  }
  return tokens;
}

std::string without_mark(std::string content) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (content.starts_with(kMark)) content.erase(0, kMark.size());
  return content;
}

dom::object read_json_object(const std::filesystem::path& path, dom::parser& parser, std::string_view kind) {
  const std::string content = without_mark(read_file(path));
  dom::element root;
  simdjson::error_code fault = parser.parse(content).get(root);
  if (fault && !parser.parse(fit_json(content)).get(root)) fault = simdjson::SUCCESS;
  if (fault) throw_user_error("'{}' is not {}: {}", path.string(), kind, simdjson::error_message(fault));
  dom::object object;
  if (root.get(object)) throw_user_error("'{}' is not {}: it is JSON, but no object", path.string(), kind);
  return object;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string vocabulary_json(std::span<const std::string> tokens) {
  std::string out = "{";
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    fmt::format_to(std::back_inserter(out), "{}{}: {}", id == 0 ? "" : ", ", json_string(tokens[id]), id);
  }
  return out + "}";
}

std::string added_tokens_json(std::span<const std::string> tokens, std::span<const std::int32_t> special,
                              std::span<const std::int32_t> found) {
  std::vector<std::int32_t> ids(special.begin(), special.end());
  ids.insert(ids.end(), found.begin(), found.end());
  std::ranges::sort(ids);
  std::string out;
  for (const std::int32_t id : ids) {
    const bool is_found = std::ranges::binary_search(found, id);
    fmt::format_to(std::back_inserter(out),
                   R"({}{{"id": {}, "content": {}, "single_word": false, "lstrip": false, "rstrip": false, )"
                   R"("normalized": {}, "special": {}}})",
                   out.empty() ? "" : ", ", id, json_string(tokens[static_cast<std::size_t>(id)]), is_found, !is_found);
  }
  return out;
}

}  // namespace teratron

// Checked access to the fields of JSON files, which a person or a disk may have damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace teratron {

// Rewrites what Python's json module writes and strict parsers refuse. A whole number beyond 64 bits becomes a
// floating-point one, a number beyond double's range 0 or double's largest, NaN and Infinity null, half a surrogate
// pair U+FFFD. transformers writes 1000000000000000019884624838656 where a tokenizer has no longest text. Text that is
// not JSON stays as it is.
std::string fit_json(std::string_view json);

// Limit of the stack: values are copied, compared and written by recursion.
inline constexpr int kDeepestJson = 1000;
// Whether objects and lists nest deeper than that in `text`, which may be anything.
bool nests_too_deep(std::string_view text);

// Parses a JSON value, fitted where need be. Discarded: the text is none, or nests deeper than kDeepestJson.
template <class Json>
Json parse_fitted(std::string_view text, const typename Json::parser_callback_t& callback = nullptr) {
  Json value = Json::parse(text, callback, /*allow_exceptions=*/false);
  if (value.is_discarded()) value = Json::parse(fit_json(text), callback, /*allow_exceptions=*/false);
  if (nests_too_deep(text)) value = Json(Json::value_t::discarded);  // once the callback has seen it
  return value;
}

// Parses one JSON object. UserError, naming `path`: the text is something else, or nests deeper than kDeepestJson.
nlohmann::json parse_json_object(std::string_view text, const std::filesystem::path& path);

// Fields of one object. Each call throws a UserError that names the file and the field where the field is missing, has
// another type, or is out of range. The object and the path must outlive it.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, const std::filesystem::path& path) : object_(object), path_(path) {}

  bool has(std::string_view key) const;       // present and not null
  bool contains(std::string_view key) const;  // present; null, too
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most) const;
  std::uint64_t unsigned_integer(std::string_view key) const;
  double number(std::string_view key) const;  // finite
  bool boolean(std::string_view key) const;
  std::string string(std::string_view key) const;
  const nlohmann::json& object(std::string_view key) const;
  JsonFields fields_of(std::string_view key) const { return {object(key), path_}; }
  const nlohmann::json& operator[](std::string_view key) const;  // of any type

  [[noreturn]] void throw_not(std::string_view key, std::string_view wanted) const;

 private:
  const nlohmann::json& object_;
  const std::filesystem::path& path_;
};

}  // namespace teratron

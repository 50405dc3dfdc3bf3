#include "serve/request_fields.h"

#include <algorithm>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "data/text/content.h"
#include "data/text/input_files.h"
#include "data/text/json_members.h"
#include "data/text/json_scanner.h"
#include "serve/api_error.h"

namespace teratron {

nlohmann::json parse_request(std::string_view body) {
  body = without_byte_order_mark(body);
  if (!is_utf8(body)) throw ApiError(400, "the request is not UTF-8: " + utf8_fault(body));
  // A file's NaN is read as null, which in a request would be the default.
  if (!is_json(body)) throw ApiError(400, "the request is not valid JSON: " + json_fault(body));
  if (!without_leading_space(body).starts_with('{')) throw ApiError(400, "the request is JSON, but no object");
  try {
    return parse_json_object(body, "the request");
  } catch (const UserError& error) {
    throw ApiError(400, error.what());
  }
}

std::vector<std::int32_t> token_ids(const nlohmann::json& list, std::int64_t tokens, const std::string& key) {
  std::vector<std::int32_t> ids;
  for (const nlohmann::json& id : list) {
    const bool fits = id.is_number_integer() && id >= 0 && id < tokens;
    if (!fits) refuse_field(key, "a token id must be a whole number from 0 to {}", tokens - 1);
    ids.push_back(id.get<std::int32_t>());
  }
  if (ids.empty()) refuse_field(key, "a text of token ids needs one id at least");
  return ids;
}

const nlohmann::json* RequestFields::find(const std::string& key) {
  known_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::int64_t RequestFields::integer(const std::string& key, std::int64_t absent, std::int64_t least,
                                    std::int64_t most) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_number_integer()) refuse_field(key, "{} must be a whole number", key);
  const bool is_large =
      value->is_number_unsigned() &&
      value->get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto number = value->get<std::int64_t>();
  if (is_large || number < least || number > most) refuse_field(key, "{} must be from {} to {}", key, least, most);
  return number;
}

double RequestFields::number(const std::string& key, double absent, double least, double most) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_number()) refuse_field(key, "{} must be a number", key);
  const auto number = value->get<double>();
  if (!(number >= least && number <= most)) refuse_field(key, "{} must be from {} to {}", key, least, most);
  return number;
}

bool RequestFields::boolean(const std::string& key, bool absent) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) refuse_field(key, "{} must be true or false", key);
  return value->get<bool>();
}

std::string RequestFields::text(const std::string& key, const std::string& absent) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return absent;
  if (!value->is_string()) refuse_field(key, "{} must be a string", key);
  return value->get<std::string>();
}

std::vector<std::string> RequestFields::texts(const std::string& key, std::size_t most) {
  const nlohmann::json* const value = find(key);
  if (value == nullptr) return {};
  const nlohmann::json list = value->is_array() ? *value : nlohmann::json::array({*value});
  std::vector<std::string> all;
  for (const nlohmann::json& one : list) {
    if (!one.is_string()) refuse_field(key, "{} must be a string or a list of strings", key);
    all.push_back(one.get<std::string>());
  }
  if (all.size() > most) refuse_field(key, "{} has {} strings; {} are the most", key, all.size(), most);
  return all;
}

void RequestFields::refuse_unless(const std::string& key, const std::vector<nlohmann::json>& harmless) {
  const nlohmann::json* const value = find(key);
  if (value != nullptr && std::ranges::find(harmless, *value) == harmless.end()) {
    refuse_field(key, "this server has no {}; leave it out", key);
  }
}

void RequestFields::ignore_account() {
  for (const char* key : {"model", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"})
    text(key, "");
  boolean("store", false);
  refuse_unless("service_tier", {"auto", "default"});
  const nlohmann::json* const metadata = find("metadata");
  if (metadata != nullptr && !metadata->is_object()) refuse_field("metadata", "metadata must be an object");
}

void RequestFields::refuse_unknown() const {
  for (const auto& [key, value] : object_.items()) {
    if (!known_.contains(key) && !value.is_null())
      refuse_field(key, "there is no parameter '{}' here; leave it out", key);
  }
}

}  // namespace teratron

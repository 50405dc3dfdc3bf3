// Fields of a request's JSON, checked. Null means that a field is absent.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace teratron {

// ApiError of status 400, with the field's name: another type, or out of range.
class RequestFields {
 public:
  explicit RequestFields(const nlohmann::json& object) : object_(object) {}

  const nlohmann::json* find(const std::string& key);  // nullptr: absent
  std::int64_t integer(const std::string& key, std::int64_t absent, std::int64_t least, std::int64_t most);
  double number(const std::string& key, double absent, double least, double most);
  bool boolean(const std::string& key, bool absent);
  std::string text(const std::string& key, const std::string& absent);
  // A string, or a list of strings; `most` of them.
  std::vector<std::string> texts(const std::string& key, std::size_t most);
  // Refuses a field with a value that is not in `harmless`.
  void refuse_unless(const std::string& key, const std::vector<nlohmann::json>& harmless);
  // Accepts fields about the client's account at OpenAI, which change no answer.
  void ignore_account();
  // Refuses fields that no call above has read.
  void refuse_unknown() const;

 private:
  const nlohmann::json& object_;
  std::set<std::string> known_;
};

// Token ids below `tokens` from a JSON list. ApiError of status 400, with the field's name: other elements, or none.
std::vector<std::int32_t> token_ids(const nlohmann::json& list, std::int64_t tokens, const std::string& key);

// The request's JSON object. ApiError: it is none.
nlohmann::json parse_request(std::string_view body);

}  // namespace teratron

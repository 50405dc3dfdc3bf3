#include "serve/text/called_tools.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_fields.h"
#include "data/text/input_files.h"
#include "data/text/json_members.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

constexpr std::string_view kBeginCall = "<tool_call>", kEndCall = "</tool_call>";

// Takes the call that a text begins with. Returns whether it does.
bool take_call(std::string_view& text, std::vector<CalledTool>& calls) {
  if (!text.starts_with(kBeginCall)) return false;
  // The end of the JSON is looked for, not </tool_call>, which may stand in a string.
  std::string_view json = text.substr(kBeginCall.size());
  JsonScanner scanner;
  const std::size_t size = scanner.scan(json);
  const std::string_view rest = without_leading_space(json.substr(size));
  json = json.substr(0, size);
  if (!scanner.is_complete() || !rest.starts_with(kEndCall) || nests_too_deep(json)) return false;
  const auto call = parse_fitted<nlohmann::ordered_json>(json);
  const nlohmann::ordered_json none;
  if (!call.is_object() || !call.value("name", none).is_string() || !call.value("arguments", none).is_object()) {
    return false;
  }
  // A text written anew would change large numbers. What the client could not parse is fitted: half a surrogate pair.
  const std::string_view arguments = *find_member(json, "arguments");
  const bool is_readable = nlohmann::json::accept(arguments);
  calls.push_back({.name = call["name"], .arguments = is_readable ? std::string(arguments) : fit_json(arguments)});
  text = without_leading_space(rest.substr(kEndCall.size()));
  return true;
}

std::size_t size_without_space(std::string_view text) {
  while (!text.empty() && is_blank(text.substr(text.size() - 1))) text.remove_suffix(1);
  return text.size();
}

}  // namespace

AnswerWithCalls find_tool_calls(const std::string& text) {
  AnswerWithCalls answer{.content = text, .calls = {}};
  const std::size_t begin = text.find(kBeginCall);
  if (begin == std::string::npos) return answer;
  std::string_view left = std::string_view(text).substr(begin);
  std::vector<CalledTool> calls;
  while (take_call(left, calls)) {
  }
  if (!left.empty()) return answer;
  return {.content = text.substr(0, size_without_space(std::string_view(text).substr(0, begin))),
          .calls = std::move(calls)};
}

std::size_t bytes_before_calls(std::string_view text) {
  std::size_t end = text.find(kBeginCall);
  if (end == std::string_view::npos) {
    end = text.size() - std::min(text.size(), kBeginCall.size());
    while (!kBeginCall.starts_with(text.substr(end))) ++end;
  }
  return size_without_space(text.substr(0, end));
}

}  // namespace teratron

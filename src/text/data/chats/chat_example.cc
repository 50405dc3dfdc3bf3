#include "data/chats/chat_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "data/text/json_members.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

using Json = nlohmann::ordered_json;

// Names in use for who speaks, and the role of a template.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kRoles = {{{"system", "system"},
                                                                                   {"developer", "system"},
                                                                                   {"user", "user"},
                                                                                   {"human", "user"},
                                                                                   {"assistant", "assistant"},
                                                                                   {"gpt", "assistant"},
                                                                                   {"chatgpt", "assistant"},
                                                                                   {"tool", "tool"},
                                                                                   {"observation", "tool"},
                                                                                   {"function_response", "tool"}}};

std::string_view role_of(const Json& speaker, std::string_view where) {
  const auto* const found = std::ranges::find_if(kRoles, [&](const auto& role) {
    return speaker.is_string() && speaker.get_ref<const std::string&>() == role.first;
  });
  if (found != kRoles.end()) return found->second;
  throw_user_error("{} is said by {}; there are system, user (human), assistant (gpt) and tool", where,
                   speaker.is_string() ? fmt::format("'{}'", speaker.get<std::string>()) : "nobody");
}

std::string text_of(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    throw_user_error("{} has no text; it is a string, or a list of parts of type \"text\"", where);
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.value("text", Json()).is_string()) {
      throw_user_error("{} has a part that is no text; only parts of type \"text\" are read", where);
    }
    text += (text.empty() ? "" : "\n") + part["text"].get<std::string>();
  }
  return text;
}

// Other members of a message that are texts come along, for templates that read them, such as a name.
Json message_of(const Json& given, const std::string& where) {
  if (!given.is_object()) throw_user_error("{} is no object with role and content", where);
  Json message = {
      {"role", role_of(given.contains("role") ? given["role"] : given.value("from", Json()), where)},
      {"content", text_of(given.contains("content") ? given["content"] : given.value("value", Json()), where)}};
  for (const auto& [key, value] : given.items()) {
    const bool is_read = key == "from" || key == "value" || message.contains(key);
    if (is_read || value.is_null() || (value.is_structured() && value.empty())) continue;
    if (value.is_structured())
      throw_user_error("{} has '{}', which is no text; calls of tools are not read", where, key);
    message[key] = value;
  }
  return message;
}

void add_messages(const Json& list, const char* key, Json& messages) {
  if (!list.is_array() || list.empty()) throw_user_error("\"{}\" is no list of messages", key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    messages.push_back(message_of(list[i], fmt::format("{}[{}]", key, i)));
  }
}

}  // namespace

ChatExample read_chat_example(std::string_view json) {
  if (!is_json(json)) throw_user_error("this is not valid JSON: {}", json_fault(json));
  const Json object = Json::parse(json, nullptr, false);
  if (!object.is_object())
    throw_user_error("this is no JSON object in UTF-8 with messages, or a prompt and a completion");
  ChatExample example;
  for (const char* key : {"messages", "conversations"}) {
    if (!object.contains(key)) continue;
    add_messages(object[key], key, example.messages);
    return example;
  }
  if (object.contains("prompt") && object.contains("completion")) {
    const Json &prompt = object["prompt"], &completion = object["completion"];
    if (prompt.is_string() && completion.is_string()) {
      example.prompt = prompt;
      example.completion = completion;
      return example;
    }
    add_messages(prompt, "prompt", example.messages);
    example.context = example.messages.size();
    add_messages(completion, "completion", example.messages);
    return example;
  }
  if (object.contains("text") && object["text"].is_string()) {
    example.completion = object["text"];
    return example;
  }
  throw_user_error(
      "this object has neither \"messages\", \"conversations\", \"prompt\" with \"completion\", nor a \"text\"");
}

}  // namespace teratron

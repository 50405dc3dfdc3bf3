#include "data/chats/chat_example.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/json_string.h"
#include "base/utf8.h"
#include "data/chats/tool_calls.h"
#include "data/text/json_members.h"
#include "data/text/json_scanner.h"

namespace teratron {
namespace {

using Json = nlohmann::ordered_json;

// Names in use for who speaks, and the role of a template.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kRoles = {{{"system", "system"},
                                                                                   {"developer", "system"},
                                                                                   {"user", "user"},
                                                                                   {"human", "user"},
                                                                                   {"assistant", "assistant"},
                                                                                   {"gpt", "assistant"},
                                                                                   {"chatgpt", "assistant"},
                                                                                   {"function_call", "assistant"},
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

void check_weight(const Json& weight, const std::string& where) {
  if (weight.is_number() && (weight == 0 || weight == 1)) return;
  throw_user_error("{} has the weight {}; it is 1, or 0 for an answer that is only read", where, json_text(weight));
}

// Axolotl's name for a weight of 1 or 0.
void take_train(const Json& train, const std::string& where, Json& message) {
  if (!train.is_boolean()) {
    throw_user_error("{} has \"train\": {}; it is true, or false for an answer that is only read", where,
                     json_text(train));
  }
  const int weight = train.get<bool>() ? 1 : 0;
  if (message.value("weight", weight) != weight) {
    throw_user_error("{} has \"train\": {} and another weight; leave one of them out", where, json_text(train));
  }
  message["weight"] = weight;
}

// Calls of tools in a message; null: there are none. LLaMA-Factory's form has them as the text of a turn.
Json calls_of(const Json& given, const std::string& where) {
  const auto read = [&](const char* key) { return read_tool_calls(given.value(key, Json()), where + "'s " + key); };
  if (given.value("from", Json()) != "function_call") return read("tool_calls");
  const char* const key = given.contains("content") ? "content" : "value";
  const Json value = given.value(key, Json());
  if (!value.is_string()) throw_user_error("{} has no text of a call", where);
  Json calls = parse_in_order(value.get_ref<const std::string&>(), where + "'s call");
  if (calls.is_object()) calls = Json::array({std::move(calls)});
  Json wrapped = Json::array();
  for (Json& call : calls) wrapped.push_back({{"type", "function"}, {"function", std::move(call)}});
  if (!calls.is_array() || calls.empty())
    throw_user_error("{} has a call that is no JSON object, nor a list of them", where);
  return read_tool_calls(wrapped, where + "'s call");
}

// Other members of a message that are texts come along, for templates that read them, such as a name.
Json message_of(const Json& given, const std::string& where) {
  if (!given.is_object()) throw_user_error("{} is no object with role and content", where);
  Json message = {{"role", role_of(given.contains("role") ? given["role"] : given.value("from", Json()), where)}};
  Json calls = calls_of(given, where);
  const bool is_call = given.value("from", Json()) == "function_call";
  const Json content = is_call ? Json() : given.contains("content") ? given["content"] : given.value("value", Json());
  if (calls.is_null() || !content.is_null()) message["content"] = text_of(content, where);
  if (!calls.is_null()) message["tool_calls"] = std::move(calls);
  for (const auto& [key, value] : given.items()) {
    constexpr std::array kRead = {"from", "value", "content", "train", "tool_calls"};
    const bool is_read = std::ranges::find(kRead, key) != kRead.end() || message.contains(key);
    if (is_read || value.is_null() || (value.is_structured() && value.empty())) continue;
    if (value.is_structured()) throw_user_error("{} has '{}', which is no text", where, key);
    if (key == "weight") check_weight(value, where);
    message[key] = value;
  }
  if (const Json train = given.value("train", Json()); !train.is_null()) take_train(train, where, message);
  return message;
}

void add_messages(const Json& list, const char* key, Json& messages) {
  if (!list.is_array() || list.empty()) throw_user_error("\"{}\" is no list of messages", key);
  for (std::size_t i = 0; i < list.size(); ++i) {
    messages.push_back(message_of(list[i], fmt::format("{}[{}]", key, i)));
  }
}

Json object_of(std::string_view json, std::string_view content) {
  if (!is_json(json)) throw_user_error("this is not valid JSON: {}", json_fault(json));
  Json object = parse_fitted<Json>(json);
  if (!object.is_object()) {
    throw_user_error("this is no JSON object in UTF-8 with {}, or nests values more than {} deep", content,
                     kDeepestJson);
  }
  // Columns that other rows of a table have are null.
  for (auto member = object.begin(); member != object.end();) {
    member = member->is_null() ? object.erase(member) : std::next(member);
  }
  return object;
}

const std::string& text_at(const Json& object, const char* key) {
  if (!object[key].is_string()) throw_user_error("\"{}\" is no text", key);
  return object[key].get_ref<const std::string&>();
}

// Null, or empty; lists are also kept as texts.
bool is_nothing(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty()) || value == "" || value == "[]";
}

// Puts what a template is given beside messages.
void take_extras(const Json& object, ChatExample& example) {
  if (object.contains("functions") && !is_nothing(object["functions"])) {
    throw_user_error("\"functions\" would change what the template writes; describe them as \"tools\"");
  }
  example.extras = {.tools = read_object_list(object.value("tools", Json()), "\"tools\""),
                    .documents = read_object_list(object.value("documents", Json()), "\"documents\"")};
  for (const auto& [name, list] :
       {std::pair("tools", &example.extras.tools), std::pair("documents", &example.extras.documents)}) {
    if (!example.messages.is_null() || list->is_null()) continue;
    throw_user_error("\"{}\" have no place before a prompt that is a text; put them there, or write messages", name);
  }
}

// Text of the system that stands beside a conversation or a prompt; empty: none.
std::string system_beside(const Json& object) {
  for (const char* key : {"system", "system_prompt"}) {
    if (object.contains(key) && !text_at(object, key).empty()) return text_at(object, key);
  }
  return "";
}

// Puts the system's text before the conversation.
void add_what_stands_beside(const Json& object, ChatExample& example) {
  take_extras(object, example);
  const std::string text = system_beside(object);
  if (text.empty()) return;
  if (example.messages.is_null()) {
    throw_user_error("the system's text has no place before a prompt that is a text; put it there, or write messages");
  }
  if (example.messages[0]["role"] == "system") {
    if (example.messages[0]["content"] == Json(text)) return;
    throw_user_error("the system has two texts, one beside the messages and one among them; leave one out");
  }
  example.messages.insert(example.messages.begin(), Json{{"role", "system"}, {"content", text}});
  ++example.context;
}

// Alpaca's form. An input stands below the instruction, on a line of its own, as LLaMA-Factory and others have it.
Json instructed_messages(const Json& object) {
  const auto message = [](const char* role, std::string content) {
    return Json{{"role", role}, {"content", std::move(content)}};
  };
  Json messages = Json::array();
  const auto has_text = [&](const char* key) { return object.contains(key) && !text_at(object, key).empty(); };
  for (const Json& turn : object.value("history", Json::array())) {
    if (!turn.is_array() || turn.size() != 2 || !turn[0].is_string() || !turn[1].is_string()) {
      throw_user_error("\"history\" is no list of pairs of an instruction and its answer");
    }
    messages.push_back(message("user", turn[0]));
    messages.push_back(message("assistant", turn[1]));
  }
  messages.push_back(
      message("user", text_at(object, "instruction") + (has_text("input") ? "\n" + text_at(object, "input") : "")));
  messages.push_back(message("assistant", text_at(object, "output")));
  return messages;
}

// Bytes that both texts begin with, whole characters and without a space at their end, which the answers keep; where
// one is the beginning of the other, without its last character, as TRL has it.
std::size_t common_beginning(std::string_view one, std::string_view other) {
  const auto is_inside = [](std::string_view text, std::size_t at) {
    return at < text.size() && continues_character(text[at]);
  };
  auto common = static_cast<std::size_t>(std::ranges::mismatch(one, other).in1 - one.begin());
  const bool is_all = common > 0 && common == std::min(one.size(), other.size());
  if (is_all) --common;
  while (is_inside(one, common) || is_inside(other, common)) --common;
  return is_all ? common : common - (common > 0 && one[common - 1] == ' ' ? 1 : 0);
}

// Names that sets have for the prompt of two answers.
void refuse_other_prompt(const Json& object) {
  for (const char* key : {"question", "instruction", "input", "query", "context", "history"}) {
    if (object.contains(key) && !is_nothing(object[key])) {
      throw_user_error("the prompt of both answers is missing, and there is \"{}\"; name it \"prompt\"", key);
    }
  }
}

std::array<ChatExample, 2> pair_of_texts(const Json& object) {
  const std::string chosen = object["chosen"], rejected = object["rejected"];
  std::string prompt;
  std::size_t common = 0;
  if (object.contains("prompt")) {
    prompt = object["prompt"];
  } else {
    refuse_other_prompt(object);
    common = common_beginning(chosen, rejected);
    prompt = chosen.substr(0, common);
  }
  ChatExample first{.prompt = prompt, .completion = chosen.substr(common)};
  return {std::move(first), ChatExample{.prompt = std::move(prompt), .completion = rejected.substr(common)}};
}

Json answer_of(const Json& object, const char* key) {
  const Json& answer = object[key];
  Json messages = Json::array();
  if (answer.is_string()) {
    messages.push_back({{"role", "assistant"}, {"content", answer}});
  } else if (answer.is_object()) {
    messages.push_back(message_of(answer, key));
  } else {
    add_messages(answer, key, messages);
  }
  return messages;
}

// Messages that both begin with; each keeps its last one.
std::size_t common_messages(const Json& one, const Json& other) {
  const std::size_t most = std::min(one.size(), other.size()) - 1;
  std::size_t common = 0;
  while (common < most && one[common] == other[common]) ++common;
  return common;
}

bool begins_with(const Json& messages, const Json& first) {
  return messages.size() > first.size() && std::equal(first.begin(), first.end(), messages.begin());
}

bool ends_with(const Json& messages, const Json& last) {
  return messages.size() > last.size() && std::equal(last.begin(), last.end(), messages.end() - std::ssize(last));
}

// Messages before the answers, where they stand by themselves.
Json prompt_of(const Json& object, const Json& chosen) {
  const bool is_asked = chosen[0]["role"] != "assistant";
  Json prompt = Json::array();
  for (const char* key : {"prompt", "messages", "conversations"}) {
    // Beside whole conversations, "messages" often repeats the chosen one.
    if (is_asked && key != std::string_view("prompt")) continue;
    if (!prompt.empty() || !object.contains(key)) continue;
    if (object[key].is_string() && key == std::string_view("prompt")) continue;
    add_messages(object[key], key, prompt);
    if (ends_with(prompt, chosen)) prompt.erase(prompt.end() - std::ssize(chosen), prompt.end());
  }
  if (!prompt.empty() || is_asked) return prompt;
  if (object.contains("prompt") && object["prompt"].is_string()) {
    prompt.push_back({{"role", "user"}, {"content", object["prompt"]}});
  } else {
    refuse_other_prompt(object);
  }
  return prompt;
}

std::array<ChatExample, 2> pair_of_messages(const Json& object) {
  std::array<Json, 2> answers = {answer_of(object, "chosen"), answer_of(object, "rejected")};
  Json prompt = prompt_of(object, answers[0]);
  if (!prompt.empty() && begins_with(answers[0], prompt) && begins_with(answers[1], prompt)) prompt = Json::array();
  std::array<ChatExample, 2> pair;
  const std::size_t common = prompt.empty() ? common_messages(answers[0], answers[1]) : 0;
  for (std::size_t side = 0; side < pair.size(); ++side) {
    pair[side].messages = prompt;
    pair[side].context = prompt.size() + common;
    for (Json& message : answers[side]) pair[side].messages.push_back(std::move(message));
  }
  return pair;
}

// Example of an object that says what is read and what is learned; none: it has another form.
std::optional<ChatExample> asked_example(const Json& object) {
  ChatExample example;
  for (const char* key : {"messages", "conversations"}) {
    if (!object.contains(key)) continue;
    add_messages(object[key], key, example.messages);
    return example;
  }
  if (object.contains("prompt") && object.contains("completion")) {
    const Json &prompt = object["prompt"], &completion = object["completion"];
    if (prompt.is_string() && completion.is_string()) return ChatExample{.prompt = prompt, .completion = completion};
    add_messages(prompt, "prompt", example.messages);
    example.context = example.messages.size();
    add_messages(completion, "completion", example.messages);
    return example;
  }
  if (!object.contains("instruction") || !object.contains("output")) return std::nullopt;
  example.messages = instructed_messages(object);
  return example;
}

}  // namespace

std::array<ChatExample, 2> read_preference_example(std::string_view json) {
  const Json object = object_of(json, "a chosen and a rejected answer");
  for (const char* key : {"chosen", "rejected"}) {
    if (!object.contains(key)) throw_user_error("this object has no \"{}\", an answer", key);
    const Json& answer = object[key];
    if (!answer.is_string() && !answer.is_structured()) {
      throw_user_error("\"{}\" is no answer; it is a text, a message, or a list of messages", key);
    }
  }
  const auto is_text = [&](const char* key) { return !object.contains(key) || object[key].is_string(); };
  const bool are_texts = object["chosen"].is_string() && object["rejected"].is_string() && is_text("prompt") &&
                         !object.contains("messages") && !object.contains("conversations");
  std::array<ChatExample, 2> pair = are_texts ? pair_of_texts(object) : pair_of_messages(object);
  for (ChatExample& example : pair) add_what_stands_beside(object, example);
  return pair;
}

ChatExample read_chat_example(std::string_view json) {
  const Json object = object_of(json, "messages, or a prompt and a completion");
  if (std::optional<ChatExample> example = asked_example(object)) {
    add_what_stands_beside(object, *example);
    return *std::move(example);
  }
  if (object.contains("text") && object["text"].is_string()) return {.completion = object["text"]};
  throw_user_error(
      "this object has neither \"messages\", \"conversations\", \"prompt\" with \"completion\", \"instruction\" with "
      "\"output\", nor a \"text\"");
}

}  // namespace teratron

#include "serve/text/chat_request.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"
#include "data/chats/tool_calls.h"
#include "data/text/content.h"
#include "data/text/json_members.h"
#include "serve/api_error.h"
#include "serve/request_fields.h"

namespace teratron {
namespace {

constexpr const char *kMessages = "messages", *kTools = "tools", *kCalls = "tool_calls";

// Parts of a content, a line each.
std::string joined_parts(const nlohmann::json& parts, const std::string& where) {
  std::string text;
  for (const nlohmann::json& part : parts) {
    if (!part.is_object()) refuse_field(kMessages, "a part of {} must be an object with type and text", where);
    RequestFields fields(part);
    const std::string type = fields.text("type", "");
    if (type != "text") {
      refuse_field(kMessages, "a part of {} is of type '{}'; this model reads parts of type 'text' alone", where, type);
    }
    if (!text.empty()) text += '\n';
    text += fields.text("text", "");
    fields.refuse_unknown();
  }
  return text;
}

// Member of a request as its text has it.
nlohmann::ordered_json member_in_order(std::string_view body, const char* key) {
  const std::optional<std::string_view> text = find_member(without_byte_order_mark(body), key);
  check(text.has_value(), "a member of the request");
  return parse_in_order(*text, key);
}

nlohmann::ordered_json read_message(const nlohmann::json& message, const nlohmann::ordered_json& ordered,
                                    std::size_t number) {
  constexpr std::array kRoles = {"system", "user", "assistant", "tool"};
  const std::string name = fmt::format("messages[{}]", number);
  if (!message.is_object()) refuse_field(kMessages, "{} must be an object with role and content", name);
  RequestFields fields(message);
  std::string role = fields.text("role", "");
  if (role == "developer") role = "system";  // OpenAI's newer name
  if (std::ranges::find(kRoles, role) == kRoles.end()) {
    refuse_field(kMessages, "{} has the role '{}'; there are system, user, assistant and tool", name, role);
  }
  nlohmann::ordered_json read = {{"role", role}}, calls;
  if (fields.find(kCalls) != nullptr) calls = read_tool_calls(ordered[number][kCalls], name + "." + kCalls);
  const nlohmann::json* const content = fields.find("content");
  if (content != nullptr && content->is_string()) {
    read["content"] = content->get<std::string>();
  } else if (content != nullptr && content->is_array()) {
    read["content"] = joined_parts(*content, name + ".content");
  } else if (content != nullptr || calls.is_null()) {
    refuse_field(kMessages, "{}.content must be a string, or a list of parts of type 'text'", name);
  }
  if (!calls.is_null()) read[kCalls] = std::move(calls);
  for (const char* key : {"name", "tool_call_id"}) {
    if (fields.find(key) != nullptr) read[key] = fields.text(key, "");
  }
  // Clients send answers back with all fields that a message can have.
  for (const auto& [key, value] : message.items()) {
    if (value.is_array() && value.empty()) fields.find(key);
  }
  fields.refuse_unknown();
  return read;
}

nlohmann::ordered_json read_messages(RequestFields& fields, std::string_view body, const CompletionLimits& limits) {
  const nlohmann::json* const list = fields.find(kMessages);
  if (list == nullptr || !list->is_array() || list->empty()) {
    refuse_field(kMessages, "messages must be a list of one message or more, each with role and content");
  }
  if (list->size() > static_cast<std::size_t>(limits.positions)) {
    throw ApiError(400,
                   fmt::format("messages has {} entries, and the model's context holds {} tokens; send fewer",
                               list->size(), limits.positions),
                   kMessages, "context_length_exceeded");
  }
  const bool has_calls = std::ranges::any_of(
      *list, [](const nlohmann::json& message) { return message.is_object() && message.contains(kCalls); });
  const nlohmann::ordered_json ordered = has_calls ? member_in_order(body, kMessages) : nlohmann::ordered_json();
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < list->size(); ++i) messages.push_back(read_message((*list)[i], ordered, i));
  return messages;
}

nlohmann::ordered_json read_list(RequestFields& fields, std::string_view body, const char* key) {
  const nlohmann::json* const list = fields.find(key);
  if (list == nullptr) return nullptr;
  if (!list->is_array()) refuse_field(key, "{} must be a list of objects", key);
  try {
    return read_object_list(member_in_order(body, key), key);
  } catch (const UserError& error) {
    refuse_field(key, "{}", error.what());
  }
}

// Tools that the answer may call: the request's, or none if tool_choice forbids calls.
nlohmann::ordered_json read_tools(RequestFields& fields, std::string_view body) {
  nlohmann::ordered_json tools = read_list(fields, body, kTools);
  for (const nlohmann::ordered_json& tool : tools) {
    const nlohmann::ordered_json none, function = tool.value("function", none);
    if (tool.value("type", none) != "function" || !function.is_object() || !function.value("name", none).is_string()) {
      refuse_field(kTools, "a tool must be {{\"type\": \"function\", \"function\": {{\"name\": .., ..}}}}");
    }
  }
  const nlohmann::json* const choice = fields.find("tool_choice");
  if (choice == nullptr || *choice == "auto") return tools;
  if (*choice != "none") {
    refuse_field("tool_choice", "tool_choice must be auto or none; this server cannot make a model call a tool");
  }
  return nullptr;
}

// The template writes the beginning of a text itself, or wants none.
std::vector<std::int32_t> prompt_of(RequestFields& fields, std::string_view body, const TemplateExtras& extras,
                                    const Tokenizer& tokenizer, const ChatTemplate& form,
                                    const CompletionLimits& limits) {
  try {
    const nlohmann::ordered_json messages = read_messages(fields, body, limits);
    std::vector<std::int32_t> prompt = tokenizer.encode(
        form.render(messages, fields.boolean("add_generation_prompt", true), extras), SpecialText::kToken);
    if (prompt.empty()) refuse_field(kMessages, "the model's chat template makes no text of these messages");
    return prompt;
  } catch (const ChatTemplateError& error) {
    throw ApiError(400, error.what(), kMessages);
  } catch (const UserError& error) {
    throw ApiError(400, error.what(), kMessages);
  }
}

struct MostTokens {
  const char* key;
  std::int64_t count;
};

std::optional<MostTokens> read_most_tokens(RequestFields& fields) {
  std::optional<MostTokens> most;
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {
    if (fields.find(key) == nullptr) continue;
    if (most) refuse_field(key, "max_tokens and max_completion_tokens are one limit; give one of them");
    most = {key, fields.integer(key, 0, 0, 1 << 30)};
  }
  return most;
}

// Translates the chat's fields for scores to those of a completion.
void read_scores(RequestFields& fields, nlohmann::json& completion) {
  constexpr std::int64_t kMostAlternatives = 20;
  const bool is_scored = fields.boolean("logprobs", false);
  const std::int64_t alternatives = fields.integer("top_logprobs", 0, 0, kMostAlternatives);
  if (alternatives > 0 && !is_scored) refuse_field("top_logprobs", "top_logprobs needs logprobs");
  if (is_scored) completion["logprobs"] = alternatives;
}

void read_response_format(RequestFields& fields) {
  constexpr const char* kKey = "response_format";
  const nlohmann::json* const format = fields.find(kKey);
  if (format == nullptr) return;
  if (!format->is_object()) refuse_field(kKey, "response_format must be an object with a type");
  RequestFields inner(*format);
  const std::string type = inner.text("type", "");
  if (type == "text") return inner.refuse_unknown();
  refuse_field(kKey,
               "response_format is of type '{}'; answers are not held to a form here, so only 'text' is taken, "
               "and a form may be asked for in a message",
               type);
}

// Refuses fields that ask for more than a text.
void refuse_more_than_text(RequestFields& fields) {
  const nlohmann::json none = nlohmann::json::array();
  fields.refuse_unless("functions", {none});  // the older name of tools
  fields.refuse_unless("function_call", {"none", "auto"});
  read_response_format(fields);
  fields.refuse_unless("modalities", {nlohmann::json::array({"text"})});
}

}  // namespace

CompletionRequest read_chat_request(const nlohmann::json& json, std::string_view body, const Tokenizer& tokenizer,
                                    const ChatRules& rules, const CompletionLimits& limits) {
  if (!rules.form) {
    throw ApiError(400,
                   rules.why_none +
                       "; start the server with --chat-template FILE, or send the text of the chat to "
                       "/v1/completions",
                   "", "chat_not_supported");
  }
  RequestFields fields(json);
  fields.ignore_account();
  nlohmann::json completion = nlohmann::json::object();
  for (const char* name : {"temperature", "top_p", "top_k", "repetition_penalty", "seed", "n", "stop", "ignore_eos",
                           "stream", "stream_options", "frequency_penalty", "presence_penalty", "logit_bias"}) {
    if (const nlohmann::json* const value = fields.find(name)) completion[name] = *value;
  }
  const std::optional<MostTokens> most = read_most_tokens(fields);
  read_scores(fields, completion);
  refuse_more_than_text(fields);
  const TemplateExtras extras{.tools = read_tools(fields, body), .documents = read_list(fields, body, "documents")};
  const bool calls_many = fields.boolean("parallel_tool_calls", true);
  std::vector<std::int32_t> prompt = prompt_of(fields, body, extras, tokenizer, *rules.form, limits);
  fields.refuse_unknown();
  const std::int64_t tokens = std::ssize(prompt), room = limits.positions - tokens + 1;
  if (room < std::max<std::int64_t>(1, most ? most->count : 1)) {
    throw ApiError(
        400,
        fmt::format("the model's context holds {} tokens, and the messages have {}{}; shorten them{}", limits.positions,
                    tokens, most ? fmt::format(", with {} {}", most->key, most->count) : "",
                    most ? ", or ask for fewer" : ""),
        kMessages, "context_length_exceeded");
  }
  completion["max_tokens"] = most ? most->count : room;
  completion["prompt"] = std::move(prompt);
  CompletionRequest request = read_completion_request(completion, tokenizer, limits);
  if (!extras.tools.is_null()) request.most_calls = calls_many ? std::numeric_limits<std::size_t>::max() : 1;
  if (!fields.boolean("ignore_eos", false)) request.settings.other_stops = rules.ends;
  return request;
}

}  // namespace teratron

#include "serve/text/chat_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace teratron {

using OrderedJson = nlohmann::ordered_json;

ChatAnswer::ChatAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head)
    : TextAnswer(request, tokenizer, std::move(head), "chat.completion", "chat.completion.chunk") {
  for (std::int64_t sample = 0; sample < request.samples; ++sample) {
    messages_.push_back({.decoder = StreamDecoder(tokenizer)});
  }
}

std::vector<OrderedJson> ChatAnswer::add(const TextEvent& event) {
  count(event);
  Message& message = messages_[event.text];
  std::vector<OrderedJson> parts;
  if (!std::exchange(message.has_begun, true)) {
    parts.push_back(part(event.text, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr));
  }
  message.text += message.decoder.push_bytes(event.bytes);
  message.kept += event.bytes.size();
  if (event.token) {
    if (request_.alternatives) message.scores.push_back({.token = *event.token, .offset = message.bytes});
    message.bytes += tokenizer_.bytes_of(event.token->chosen.token).size();
  }
  if (event.end) end(message, *event.end);
  // Scores are sent with their text, and text that may begin a stop text is held back.
  std::size_t scores = event.end ? message.scores.size() : message.sent_scores;
  while (scores < message.scores.size() && message.scores[scores].offset < message.kept) ++scores;
  const std::size_t text = sendable(message);
  if (message.sent_text < text || message.sent_scores < scores) {
    parts.push_back(part(event.text, {{"content", message.text.substr(message.sent_text, text - message.sent_text)}},
                         scores_of(message, message.sent_scores, scores), nullptr));
    message.sent_text = text;
    message.sent_scores = scores;
  }
  if (event.end) {
    if (!message.calls.empty()) {
      parts.push_back(part(event.text, {{"tool_calls", calls_of(message, true)}}, nullptr, nullptr));
    }
    parts.push_back(part(event.text, OrderedJson::object(), nullptr, message.reason));
  }
  return parts;
}

// Bytes of the text that a stream may send: calls of tools are held back until the end, where they are whole.
std::size_t ChatAnswer::sendable(const Message& message) const {
  if (request_.most_calls == 0 || message.reason != nullptr) return message.text.size();
  return std::max(message.sent_text, bytes_before_calls(message.text));
}

void ChatAnswer::end(Message& message, GenerationEnd end) const {
  message.text += message.decoder.finish();
  message.reason = finish_reason(end);
  if (request_.most_calls > 0) {
    AnswerWithCalls answer = find_tool_calls(message.text);
    message.text = std::move(answer.content);
    message.calls = std::move(answer.calls);
    message.calls.resize(std::min(message.calls.size(), request_.most_calls));
    if (!message.calls.empty()) message.reason = "tool_calls";
  }
  if (end != GenerationEnd::kStopped) return;
  // Tokens of the stop text alone are not of the message.
  while (message.scores.size() > message.sent_scores && message.scores.back().offset >= message.kept) {
    message.scores.pop_back();
  }
}

OrderedJson ChatAnswer::score_of(const TokenScore& token) const {
  OrderedJson bytes = OrderedJson::array();
  for (const char byte : tokenizer_.bytes_of(token.token)) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", name_of_token(tokenizer_, token.token)},
          {"logprob", token.log_probability},
          {"bytes", std::move(bytes)}};
}

OrderedJson ChatAnswer::scores_of(const Message& message, std::size_t from, std::size_t end) const {
  if (!request_.alternatives) return nullptr;
  OrderedJson content = OrderedJson::array();
  for (std::size_t i = from; i < end; ++i) {
    const GeneratedToken& token = message.scores[i].token;
    OrderedJson score = score_of(token.chosen);
    score["top_logprobs"] = OrderedJson::array();
    for (const TokenScore& one : token.likeliest) score["top_logprobs"].push_back(score_of(one));
    content.push_back(std::move(score));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

OrderedJson ChatAnswer::calls_of(const Message& message, bool is_part) const {
  const auto text = static_cast<std::size_t>(&message - messages_.data());
  OrderedJson list = OrderedJson::array();
  for (std::size_t i = 0; i < message.calls.size(); ++i) {
    OrderedJson call = {{"id", fmt::format("call_{}_{}_{}", head_.id, text, i)},
                        {"type", "function"},
                        {"function", {{"name", message.calls[i].name}, {"arguments", message.calls[i].arguments}}}};
    if (is_part) call["index"] = i;
    list.push_back(std::move(call));
  }
  return list;
}

OrderedJson ChatAnswer::part(std::size_t index, OrderedJson delta, OrderedJson scores, const char* reason) const {
  return part_of({{"index", index},
                  {"delta", std::move(delta)},
                  {"logprobs", std::move(scores)},
                  {"finish_reason", text_or_null(reason)}});
}

OrderedJson ChatAnswer::whole() const {
  OrderedJson choices = OrderedJson::array();
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    OrderedJson said = {{"role", "assistant"}, {"content", message.text}, {"refusal", nullptr}};
    if (!message.calls.empty()) {
      if (message.text.empty()) said["content"] = nullptr;
      said["tool_calls"] = calls_of(message, false);
    }
    choices.push_back({{"index", i},
                       {"message", std::move(said)},
                       {"logprobs", scores_of(message, 0, message.scores.size())},
                       {"finish_reason", text_or_null(message.reason)}});
  }
  return whole_of(std::move(choices));
}

}  // namespace teratron

#include "serve/text/text_answer.h"

#include <fmt/format.h>

#include <utility>

#include "base/utf8.h"

namespace teratron {

using OrderedJson = nlohmann::ordered_json;

std::string name_of_token(const Tokenizer& tokenizer, std::int32_t token) {
  const std::string_view bytes = tokenizer.bytes_of(token);
  return is_utf8(bytes) ? std::string(bytes) : name_of_bytes(bytes);
}

std::string name_of_bytes(std::string_view bytes) {
  std::string text = "bytes:";
  for (const char byte : bytes) text += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return text;
}

const char* finish_reason(GenerationEnd end) { return end == GenerationEnd::kLength ? "length" : "stop"; }

OrderedJson text_or_null(const char* text) { return text == nullptr ? OrderedJson(nullptr) : OrderedJson(text); }

TextAnswer::TextAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head,
                       const char* object, const char* part_object)
    : request_(request),
      tokenizer_(tokenizer),
      head_(std::move(head)),
      object_(object),
      part_object_(part_object),
      open_(std::ssize(request.prompts) * request.samples) {}

void TextAnswer::count(const TextEvent& event) {
  // A prompt counts once, by its first sample.
  if (static_cast<std::int64_t>(event.text) % request_.samples == 0) reused_ += event.reused;
  if (event.token) ++made_;
  if (event.end) --open_;
}

OrderedJson TextAnswer::frame(const char* object, OrderedJson choices) const {
  return {{"id", head_.id},
          {"object", object},
          {"created", head_.created},
          {"model", head_.model},
          {"choices", std::move(choices)}};
}

OrderedJson TextAnswer::whole_of(OrderedJson choices) const {
  OrderedJson json = frame(object_, std::move(choices));
  json["usage"] = usage();
  return json;
}

OrderedJson TextAnswer::part_of(OrderedJson choice) const {
  OrderedJson json = frame(part_object_, OrderedJson::array({std::move(choice)}));
  if (request_.includes_usage) json["usage"] = nullptr;
  return json;
}

OrderedJson TextAnswer::usage_part() const {
  OrderedJson json = frame(part_object_, OrderedJson::array());
  json["usage"] = usage();
  return json;
}

OrderedJson TextAnswer::usage() const {
  std::int64_t prompt = 0;
  for (const auto& tokens : request_.prompts) prompt += std::ssize(tokens);
  return {{"prompt_tokens", prompt},
          {"completion_tokens", made_},
          {"total_tokens", prompt + made_},
          {"prompt_tokens_details", {{"cached_tokens", reused_}}}};
}

}  // namespace teratron

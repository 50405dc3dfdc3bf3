// TextAnswer: the common parts of answers to completions and chats: the frame of their JSON, and counts of tokens.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "serve/text/completion_request.h"

namespace teratron {

// Identity of an answer, which all of its parts carry.
struct AnswerHead {
  std::string id, model;
  std::int64_t created = 0;
};

// Text of a token. Bytes that are no characters by themselves are named as OpenAI does.
std::string name_of_token(const Tokenizer& tokenizer, std::int32_t token);
std::string name_of_bytes(std::string_view bytes);  // bytes:\x41

// "finish_reason" of a text that has ended.
const char* finish_reason(GenerationEnd end);
// The text as JSON; null for a null pointer.
nlohmann::ordered_json text_or_null(const char* text);

class TextAnswer {
 public:
  bool is_finished() const { return open_ == 0; }
  // Last part of a stream: the counts of tokens.
  nlohmann::ordered_json usage_part() const;

 protected:
  // `object`, `part_object`: "object" of a whole answer and of a part of a stream. The request and the tokenizer
  // outlive the answer.
  TextAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head, const char* object,
             const char* part_object);
  ~TextAnswer() = default;

  void count(const TextEvent& event);  // once for each event of the answer
  nlohmann::ordered_json whole_of(nlohmann::ordered_json choices) const;
  nlohmann::ordered_json part_of(nlohmann::ordered_json choice) const;  // part of a stream

  const CompletionRequest& request_;
  const Tokenizer& tokenizer_;
  const AnswerHead head_;

 private:
  nlohmann::ordered_json frame(const char* object, nlohmann::ordered_json choices) const;
  nlohmann::ordered_json usage() const;

  const char* const object_;
  const char* const part_object_;
  std::int64_t open_;        // texts that have not ended
  std::int64_t made_ = 0;    // tokens of all texts
  std::int64_t reused_ = 0;  // tokens of prompts that other texts' caches held
};

}  // namespace teratron

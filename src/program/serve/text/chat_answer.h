// Answer of /v1/chat/completions: messages that grow by the engine's events.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/text/called_tools.h"
#include "serve/text/completion_answer.h"

namespace teratron {

class ChatAnswer {
 public:
  // The arguments outlive it. The request has one prompt.
  ChatAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head);

  // Takes an event. Returns the parts of a stream that it makes: each message begins with its role.
  std::vector<nlohmann::ordered_json> add(const TextEvent& event);
  bool is_finished() const { return open_ == 0; }
  nlohmann::ordered_json whole() const;       // of an answer that is no stream
  nlohmann::ordered_json usage_part() const;  // the last part of a stream

 private:
  struct Score {
    GeneratedToken token;
    std::size_t offset = 0;  // bytes of the message's tokens before it
  };
  struct Message {
    StreamDecoder decoder;
    std::string text;
    std::vector<Score> scores;
    std::size_t bytes = 0, kept = 0;             // of its tokens, and of those that joined the text
    std::size_t sent_text = 0, sent_scores = 0;  // in parts of a stream
    std::int64_t made = 0;
    std::vector<CalledTool> calls;  // found at its end, and out of the text
    const char* reason = nullptr;
    bool has_begun = false;
  };

  void end(Message& message, const TextEvent& event) const;
  std::size_t sendable(const Message& message) const;
  nlohmann::ordered_json calls_of(const Message& message, bool is_part) const;
  nlohmann::ordered_json score_of(const TokenScore& token) const;
  nlohmann::ordered_json scores_of(const Message& message, std::size_t from, std::size_t end) const;
  nlohmann::ordered_json part(std::size_t index, nlohmann::ordered_json delta, nlohmann::ordered_json scores,
                              const char* reason) const;
  nlohmann::ordered_json frame(const char* object) const;
  nlohmann::ordered_json usage() const;

  const CompletionRequest& request_;
  const Tokenizer& tokenizer_;
  const AnswerHead head_;
  std::vector<Message> messages_;
  std::size_t open_;
  std::int64_t reused_ = 0;  // tokens of the prompt
};

}  // namespace teratron

// Answer of /v1/chat/completions: messages that grow by the engine's events.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/text/called_tools.h"
#include "serve/text/text_answer.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {

class ChatAnswer : public TextAnswer {
 public:
  // The arguments outlive it. The request has one prompt.
  ChatAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head);

  // Takes an event. Returns the parts of a stream that it makes: each message begins with its role.
  std::vector<nlohmann::ordered_json> add(const TextEvent& event);
  nlohmann::ordered_json whole() const;  // of an answer that is no stream

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
    std::vector<CalledTool> calls;               // found at its end, and out of the text
    const char* reason = nullptr;
    bool has_begun = false;
  };

  void end(Message& message, GenerationEnd end) const;
  std::size_t sendable(const Message& message) const;
  nlohmann::ordered_json calls_of(const Message& message, bool is_part) const;
  nlohmann::ordered_json score_of(const TokenScore& token) const;
  nlohmann::ordered_json scores_of(const Message& message, std::size_t from, std::size_t end) const;
  nlohmann::ordered_json part(std::size_t index, nlohmann::ordered_json delta, nlohmann::ordered_json scores,
                              const char* reason) const;

  std::vector<Message> messages_;
};

}  // namespace teratron

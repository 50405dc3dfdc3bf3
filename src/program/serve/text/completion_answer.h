// Answer of /v1/completions: choices that grow by the engine's events.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "serve/text/completion_request.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {

// Identity of an answer, which all of its parts carry.
struct AnswerHead {
  std::string id, model;
  std::int64_t created = 0;
};

// A token's text; bytes that are no characters by themselves are named as OpenAI does.
std::string name_of_token(const Tokenizer& tokenizer, std::int32_t token);

// An answer's "usage". `reused`: tokens of prompts that other texts' caches held.
nlohmann::ordered_json usage_of(std::int64_t prompt_tokens, std::int64_t new_tokens, std::int64_t reused);

class CompletionAnswer {
 public:
  // The arguments outlive it.
  CompletionAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head);

  // Takes an event. Returns the parts of a stream that it makes.
  std::vector<nlohmann::ordered_json> add(const TextEvent& event);
  bool is_finished() const { return open_ == 0; }
  nlohmann::ordered_json whole() const;       // of an answer that is no stream
  nlohmann::ordered_json usage_part() const;  // the last part of a stream

 private:
  struct Scores {
    std::vector<std::string> tokens;
    std::vector<double> values;  // NaN: the first token of a prompt has none
    std::vector<std::vector<TokenScore>> likeliest;
    std::vector<std::size_t> offsets;  // characters of the text before the token
  };
  struct Text {
    StreamDecoder decoder;         // of the text
    StreamDecoder offset_decoder;  // of its tokens, those of a stop text among them
    std::size_t characters = 0;    // that the latter made
    std::string text;
    std::size_t shown = 0;  // its characters
    Scores scores;
    std::size_t sent_scores = 0, sent_text = 0;  // in parts of a stream
    std::int64_t made = 0;
    double log_probability = 0;  // of the tokens made, where they are scored
    const char* reason = nullptr;

    void show(const std::string& more) {
      text += more;
      shown += count_characters(more);
    }
  };

  // `before`: bytes of this token and of those after it that come before the text.
  void add_score(Text& text, const GeneratedToken& token, std::size_t& before) const;
  void add_prompt(Text& text, const std::vector<std::int32_t>& prompt, const std::vector<GeneratedToken>& scores) const;
  void end(Text& text, const TextEvent& event);
  nlohmann::ordered_json scores_of(const Text& text, std::size_t from, std::size_t end) const;
  // With the text from a byte on, and the scores in a range.
  nlohmann::ordered_json choice(const Text& text, std::size_t index, std::size_t text_from, std::size_t from,
                                std::size_t end) const;
  std::vector<std::size_t> chosen() const;
  nlohmann::ordered_json frame() const;
  nlohmann::ordered_json usage() const;

  const CompletionRequest& request_;
  const Tokenizer& tokenizer_;
  const AnswerHead head_;
  std::vector<Text> texts_;
  std::size_t open_;
  std::int64_t reused_ = 0;  // tokens of prompts
};

}  // namespace teratron

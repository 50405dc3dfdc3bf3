// Answer of /v1/completions: choices that grow by the engine's events.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "serve/text/text_answer.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {

class CompletionAnswer : public TextAnswer {
 public:
  // The arguments outlive it.
  CompletionAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head);

  // Takes an event. Returns the parts of a stream that it makes.
  std::vector<nlohmann::ordered_json> add(const TextEvent& event);
  nlohmann::ordered_json whole() const;  // of an answer that is no stream

 private:
  struct Scores {
    std::vector<GeneratedToken> tokens;  // the first one of a prompt has no log-probability
    std::vector<std::size_t> offsets;    // characters of the text before the token
  };
  struct Text {
    StreamDecoder decoder;         // of the text
    StreamDecoder offset_decoder;  // of its tokens, those of a stop text among them
    std::size_t characters = 0;    // made by offset_decoder
    std::string text;
    std::size_t shown = 0;  // characters of `text`
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

  // `before`: bytes, of this token and of later ones, that come before the text; less those of this token afterwards.
  void add_score(Text& text, const GeneratedToken& token, std::size_t& before) const;
  void add_prompt(Text& text, const std::vector<std::int32_t>& prompt, const std::vector<GeneratedToken>& scores) const;
  static void end(Text& text, GenerationEnd end);
  nlohmann::ordered_json top_of(const GeneratedToken& token) const;
  nlohmann::ordered_json scores_of(const Text& text, std::size_t from, std::size_t end) const;
  // Has the text from the byte text_from on, and scores [from, end).
  nlohmann::ordered_json choice(const Text& text, std::size_t index, std::size_t text_from, std::size_t from,
                                std::size_t end) const;
  std::vector<std::size_t> chosen() const;

  std::vector<Text> texts_;
};

}  // namespace teratron

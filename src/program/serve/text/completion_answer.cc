#include "serve/text/completion_answer.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/utf8.h"

namespace teratron {
namespace {

// Characters of unfinished bytes in `decoder` that `bytes` do not complete: they end before the first character of
// `bytes`.
std::size_t characters_ended_by(StreamDecoder decoder, std::string_view bytes) {
  std::size_t characters = count_characters(decoder.push_bytes(bytes.substr(0, 1)));
  characters += count_characters(decoder.finish());
  return bytes.empty() ? characters : characters - 1;
}

// Bytes of the tokens before their text: a token that begins texts, or SentencePiece's first space.
std::size_t bytes_before(const std::string& text, const std::vector<std::int32_t>& tokens, const Tokenizer& tokenizer) {
  std::string all;
  for (const std::int32_t token : tokens) all += tokenizer.bytes_of(token);
  return all.ends_with(text) ? all.size() - text.size() : 0;
}

}  // namespace

CompletionAnswer::CompletionAnswer(const CompletionRequest& request, const Tokenizer& tokenizer, AnswerHead head)
    : TextAnswer(request, tokenizer, std::move(head), "text_completion", "text_completion") {
  for (const std::string& prompt : request.prompt_texts) {
    for (std::int64_t sample = 0; sample < request.samples; ++sample) {
      texts_.push_back({.decoder = StreamDecoder(tokenizer), .offset_decoder = StreamDecoder(tokenizer)});
      if (request.echo) texts_.back().show(prompt);
    }
  }
}

std::vector<nlohmann::ordered_json> CompletionAnswer::add(const TextEvent& event) {
  count(event);
  Text& text = texts_[event.text];
  const std::vector<std::int32_t>& prompt = request_.prompts[event.text / static_cast<std::size_t>(request_.samples)];
  // A prompt of one token has no scores, and comes with its first event.
  const bool is_first = text.scores.tokens.empty() && request_.settings.prompt_log_probabilities;
  if (is_first) add_prompt(text, prompt, event.prompt);
  text.show(text.decoder.push_bytes(event.bytes));
  if (event.token) {
    ++text.made;
    text.log_probability += event.token->chosen.log_probability;
    std::size_t none = 0;
    if (request_.settings.log_probabilities) add_score(text, *event.token, none);
  }
  if (event.end) end(text, *event.end);
  // Scores are sent with their text, and text that may begin a stop text is held back.
  const std::vector<std::size_t>& offsets = text.scores.offsets;
  std::size_t scores = event.end ? offsets.size() : text.sent_scores;
  while (scores < offsets.size() && offsets[scores] < text.shown) ++scores;
  if (text.sent_text == text.text.size() && text.sent_scores == scores && !event.end) return {};
  nlohmann::ordered_json part = part_of(choice(text, event.text, text.sent_text, text.sent_scores, scores));
  text.sent_text = text.text.size();
  text.sent_scores = scores;
  return {part};
}

void CompletionAnswer::end(Text& text, GenerationEnd end) {
  text.show(text.decoder.finish());
  text.reason = finish_reason(end);
  if (end != GenerationEnd::kStopped) return;
  // Tokens of the stop text alone are not of the text.
  Scores& scores = text.scores;
  while (scores.tokens.size() > text.sent_scores && scores.offsets.back() >= text.shown) {
    scores.tokens.pop_back();
    scores.offsets.pop_back();
  }
}

void CompletionAnswer::add_prompt(Text& text, const std::vector<std::int32_t>& prompt,
                                  const std::vector<GeneratedToken>& scores) const {
  std::size_t before = bytes_before(text.text, prompt, tokenizer_);
  add_score(text, {.chosen = {.token = prompt.front()}, .likeliest = {}}, before);
  for (const GeneratedToken& token : scores) add_score(text, token, before);
}

void CompletionAnswer::add_score(Text& text, const GeneratedToken& token, std::size_t& before) const {
  std::string_view bytes = tokenizer_.bytes_of(token.chosen.token);
  const std::size_t left_out = std::min(before, bytes.size());
  bytes.remove_prefix(left_out);
  before -= left_out;
  text.scores.offsets.push_back(text.characters + characters_ended_by(text.offset_decoder, bytes));
  text.scores.tokens.push_back(token);
  text.characters += count_characters(text.offset_decoder.push_bytes(bytes));
}

// The likeliest tokens and the chosen one by their names, or null. Tokens may have the same bytes (Llama 2's A and
// <0x41>): then the name is that of the chosen one, or of the likeliest, and the others have names of bytes.
nlohmann::ordered_json CompletionAnswer::top_of(const GeneratedToken& token) const {
  const TokenScore& chosen = token.chosen;
  const std::string chosen_name = name_of_token(tokenizer_, chosen.token);
  nlohmann::ordered_json top = nlohmann::ordered_json::object();
  for (const TokenScore& score : token.likeliest) {
    std::string name = name_of_token(tokenizer_, score.token);
    const bool is_taken = top.contains(name) || (name == chosen_name && score.token != chosen.token);
    if (is_taken) name = name_of_bytes(tokenizer_.bytes_of(score.token));
    top.emplace(name, score.log_probability);
  }
  if (!std::isnan(chosen.log_probability)) top.emplace(chosen_name, chosen.log_probability);
  return top.empty() ? nlohmann::ordered_json(nullptr) : top;
}

nlohmann::ordered_json CompletionAnswer::scores_of(const Text& text, std::size_t from, std::size_t end) const {
  if (!request_.alternatives) return nullptr;
  nlohmann::ordered_json tokens = nlohmann::ordered_json::array(), values = nlohmann::ordered_json::array(),
                         tops = nlohmann::ordered_json::array(), offsets = nlohmann::ordered_json::array();
  for (std::size_t i = from; i < end; ++i) {
    const GeneratedToken& token = text.scores.tokens[i];
    const double value = token.chosen.log_probability;
    tokens.push_back(name_of_token(tokenizer_, token.chosen.token));
    values.push_back(std::isnan(value) ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value));
    tops.push_back(top_of(token));
    offsets.push_back(text.scores.offsets[i]);
  }
  return {{"tokens", tokens},
          {"token_logprobs", values},
          {"top_logprobs", *request_.alternatives > 0 ? tops : nlohmann::ordered_json(nullptr)},
          {"text_offset", offsets}};
}

nlohmann::ordered_json CompletionAnswer::choice(const Text& text, std::size_t index, std::size_t text_from,
                                                std::size_t from, std::size_t end) const {
  return {{"text", text.text.substr(text_from)},
          {"index", index},
          {"logprobs", scores_of(text, from, end)},
          {"finish_reason", text_or_null(text.reason)}};
}

// Numbers of each prompt's texts that are returned: those with the highest log-probability per token, the highest
// first. A text without tokens has none, and comes last.
std::vector<std::size_t> CompletionAnswer::chosen() const {
  const auto samples = static_cast<std::size_t>(request_.samples),
             returned = static_cast<std::size_t>(request_.returned);
  const auto mean = [&](std::size_t i) {
    const Text& text = texts_[i];
    return text.made == 0 ? -std::numeric_limits<double>::infinity()
                          : text.log_probability / static_cast<double>(text.made);
  };
  std::vector<std::size_t> all;
  for (std::size_t first = 0; first < texts_.size(); first += samples) {
    std::vector<std::size_t> own(samples);
    std::iota(own.begin(), own.end(), first);
    if (samples > returned) std::ranges::stable_sort(own, std::greater(), mean);
    all.insert(all.end(), own.begin(), own.begin() + static_cast<std::ptrdiff_t>(returned));
  }
  return all;
}

nlohmann::ordered_json CompletionAnswer::whole() const {
  nlohmann::ordered_json choices = nlohmann::ordered_json::array();
  for (const std::size_t i : chosen()) {
    const Text& text = texts_[i];
    choices.push_back(choice(text, choices.size(), 0, 0, text.scores.tokens.size()));
  }
  return whole_of(std::move(choices));
}

}  // namespace teratron

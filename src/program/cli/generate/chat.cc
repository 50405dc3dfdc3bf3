#include "cli/generate/chat.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iostream>

#include "base/error.h"
#include "base/host/standard_streams.h"
#include "cli/report.h"
#include "eval/generation/generator.h"
#include "options/reading.h"
#include "tokenizer/stream_decoder.h"

namespace teratron {
namespace {

using Tokens = std::vector<std::int32_t>;

// Conversation of the first rank with a person.
class Talk {
 public:
  Talk(const Tokenizer& tokenizer, const ChatRules& rules, std::int64_t most_tokens, const std::string& system)
      : tokenizer_(tokenizer), rules_(rules), most_tokens_(most_tokens) {
    if (!system.empty()) messages_.push_back({{"role", "system"}, {"content", system}});
    kept_ = messages_.size();
  }

  // Reads the next line; the prompt with it. Empty: the input has ended.
  Tokens next() {
    const bool asks = isatty(STDIN_FILENO) != 0;
    for (std::string line;;) {
      if (asks) print_result("> ");
      if (!std::getline(std::cin, line)) return {};
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      messages_.push_back({{"role", "user"}, {"content", line}});
      Tokens prompt = fitting_prompt();
      if (!prompt.empty()) return prompt;
      messages_.erase(messages_.size() - 1);
      report_to_user(fmt::format(
          "this was not said: alone it has more than the {} tokens that leave room for an answer", most_tokens_));
    }
  }

  void add_answer(const std::string& text) { messages_.push_back({{"role", "assistant"}, {"content", text}}); }

 private:
  // The conversation's tokens, without as many of the oldest exchanges as must go; empty: the last line is too long.
  Tokens fitting_prompt() {
    try {
      for (nlohmann::ordered_json fewer = messages_;;) {
        Tokens prompt = tokenizer_.encode(rules_.form->render(fewer, true), SpecialText::kToken);
        if (prompt.empty()) throw_user_error("the model's chat template makes no text of this");
        if (std::ssize(prompt) <= most_tokens_) {
          messages_ = std::move(fewer);
          return prompt;
        }
        if (fewer.size() < kept_ + 3) return {};
        fewer.erase(kept_);  // what was said, and its answer
        fewer.erase(kept_);
      }
    } catch (const ChatTemplateError& error) {
      throw UserError(error.what());
    }
  }

  const Tokenizer& tokenizer_;
  const ChatRules& rules_;
  const std::int64_t most_tokens_;
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
  std::size_t kept_ = 0;  // messages at the beginning that stay
};

// Returns the prompt of the first rank of the model. Every rank calls it, the others with none.
Tokens share_prompt(Communicator& ranks, const Tokens& prompt) {
  if (ranks.size() == 1) return prompt;
  const std::string bytes(reinterpret_cast<const char*>(prompt.data()), prompt.size() * sizeof(prompt[0]));
  const std::string shared = ranks.all_gather_host(bytes).front();
  Tokens tokens(shared.size() / sizeof(prompt[0]));
  std::memcpy(tokens.data(), shared.data(), shared.size());
  return tokens;
}

}  // namespace

void talk(LanguageModel& model, const Tokenizer& tokenizer, const ChatRules& rules, const GenerationSettings& given,
          const std::string& system, const Rank& rank) {
  const std::int64_t positions = model.config().max_position_embeddings;
  GenerationSettings settings = given;
  settings.max_new_tokens = std::min(settings.max_new_tokens, std::max<std::int64_t>(1, positions / 2));
  Talk conversation(tokenizer, rules, positions - settings.max_new_tokens + 1, system);
  std::string answer;
  StreamDecoder decoder(tokenizer);
  const auto show = [&](const std::string& piece) {
    answer += piece;
    if (rank.is_first()) print_result(printable(piece));
  };
  Generator generator(model, {.queue = 1},
                      {.prompt = {},
                       .token =
                           [&](std::int64_t, const GeneratedToken& token) {
                             show(decoder.push(token.chosen.token));
                             return true;
                           },
                       .finished = [&](std::int64_t, GenerationEnd, std::int64_t) { show(decoder.finish()); }});
  for (std::uint32_t number = 0;; ++number) {
    Tokens prompt = share_prompt(*model.mesh().model, rank.is_first() ? conversation.next() : Tokens());
    if (prompt.empty()) return;
    answer.clear();
    generator.submit({.text = {.prompt = std::move(prompt), .number = number}, .settings = settings});
    while (generator.step()) {
    }
    conversation.add_answer(answer);
    if (rank.is_first()) print_result("\n");
  }
}

}  // namespace teratron

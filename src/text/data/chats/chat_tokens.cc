#include "data/chats/chat_tokens.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/counted.h"
#include "base/error.h"

namespace teratron {
namespace {

constexpr std::string_view kWhite = " \t\r\n";

// Numbers of the assistant's messages.
std::vector<std::size_t> said_in(const ChatExample& example) {
  std::vector<std::size_t> said;
  for (std::size_t i = 0; i < example.messages.size(); ++i) {
    if (example.messages[i]["role"] == "assistant") said.push_back(i);
  }
  return said;
}

bool is_learned(const ChatExample& example, std::size_t message) {
  return message >= example.context && example.messages[message].value("weight", 1) != 0;
}

nlohmann::ordered_json first_messages(const ChatExample& example, std::size_t count) {
  return {example.messages.begin(), example.messages.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

ChatTokenizer::ChatTokenizer(Tokenizer tokenizer, ChatRules rules, ChatTemplate::Time now)
    : tokenizer_(std::move(tokenizer)), rules_(std::move(rules)), now_(now) {
  ends_turns_ = rules_.form && rules_.form->after_answer().find_first_not_of(kWhite) != std::string::npos;
}

std::vector<ChatTokens> ChatTokenizer::tokenize(const ChatExample& example) const {
  if (example.messages.is_null()) return {continued(example)};
  if (!rules_.form) throw_user_error("{}; give one by --chat-template FILE", rules_.why_none);
  std::vector<ChatTokens> documents;
  try {
    for (const ChatText& text : texts_of(example)) documents.push_back(tokens_of(text));
  } catch (const ChatTemplateError& error) {
    throw UserError(error.what());
  }
  std::erase_if(documents, [](const ChatTokens& tokens) { return std::ranges::count(tokens.learned, true) == 0; });
  return documents;
}

std::vector<ChatTokens> ChatTokenizer::tokenize(const std::array<ChatExample, 2>& pair) const {
  std::vector<ChatTokens> answers;
  std::size_t first = std::numeric_limits<std::size_t>::max();
  for (const ChatExample& example : pair) {
    std::vector<ChatTokens> documents = tokenize(example);
    if (documents.empty()) return {};
    if (documents.size() > 1) {
      throw_user_error(
          "the chat template writes the earlier turns of an answer otherwise once others follow, so its words are "
          "unknown; end the pair at the first turn that differs");
    }
    ChatTokens& answer = answers.emplace_back(std::move(documents.front()));
    const auto end = std::find(answer.learned.rbegin(), answer.learned.rend(), true).base();
    answer.ids.resize(static_cast<std::size_t>(end - answer.learned.begin()));
    answer.learned.resize(answer.ids.size());
    first = std::min(first, static_cast<std::size_t>(std::ranges::find(answer.learned, true) - answer.learned.begin()));
  }
  for (ChatTokens& answer : answers) {
    std::fill(answer.learned.begin() + static_cast<std::ptrdiff_t>(first), answer.learned.end(), true);
  }
  return answers;
}

std::vector<ChatText> ChatTokenizer::texts_of(const ChatExample& example) const {
  const std::vector<std::size_t> said = said_in(example);
  std::vector<std::size_t> answers;
  std::ranges::copy_if(said, std::back_inserter(answers), [&](std::size_t i) { return is_learned(example, i); });
  if (answers.empty()) return {};
  if (!rules_.form->marks_answers(example.extras)) return texts_by_prefixes(example, answers);
  ChatText chat = rules_.form->render_with_answers(example.messages, example.extras, now_);
  if (said.size() == answers.size()) return {std::move(chat)};
  if (chat.answers.size() != said.size()) {
    throw_user_error("the chat template has {} for {}, so those that are only read are unknown",
                     counted(std::ssize(chat.answers), "{% generation %} block"), counted(std::ssize(said), "answer"));
  }
  std::vector<ByteRange> learned;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (is_learned(example, said[i])) learned.push_back(chat.answers[i]);
  }
  chat.answers = std::move(learned);
  return {std::move(chat)};
}

std::vector<ChatText> ChatTokenizer::texts_by_prefixes(const ChatExample& example,
                                                       const std::vector<std::size_t>& answers) const {
  std::vector<ChatText> each;  // a text up to every answer
  ChatText whole{.text = rules_.form->render(example.messages, false, example.extras, now_)};
  bool is_extended = true;  // each text by the next
  for (const std::size_t answer : answers) {
    const std::string before = rules_.form->render(first_messages(example, answer), true, example.extras, now_);
    std::string through = answer + 1 == example.messages.size()
                              ? whole.text
                              : rules_.form->render(first_messages(example, answer + 1), false, example.extras, now_);
    if (!through.starts_with(before)) {
      throw_user_error(
          "the chat template begins the answer of message {} otherwise than it writes it, so where the assistant's "
          "words "
          "begin is unknown; give a template with {{% generation %}} blocks by --chat-template FILE",
          answer);
    }
    is_extended = is_extended && whole.text.starts_with(through);
    if (ends_turns_) through.resize(std::max(before.size(), through.find_last_not_of(kWhite) + 1));
    whole.answers.push_back({before.size(), through.size()});
    each.push_back({.text = std::move(through), .answers = {whole.answers.back()}});
  }
  if (is_extended) return {std::move(whole)};
  return each;
}

ChatTokens ChatTokenizer::tokens_of(const ChatText& chat) const {
  ChatTokens tokens;
  auto answer = chat.answers.begin();
  for (const TokenSpan& token : tokenizer_.encode_with_offsets(chat.text, SpecialText::kToken)) {
    while (answer != chat.answers.end() && answer->end <= token.begin) ++answer;
    tokens.ids.push_back(token.id);
    tokens.learned.push_back(answer != chat.answers.end() && answer->begin < token.end && token.begin < token.end);
  }
  return tokens;
}

ChatTokens ChatTokenizer::continued(const ChatExample& example) const {
  const std::optional<std::int32_t> begin = tokenizer_.beginning_of_text(), end = tokenizer_.end_of_text();
  if (!end) throw_user_error("the tokenizer has no token that ends a text, which a completion needs; use another");
  const std::string text = example.prompt + example.completion;
  ChatTokens tokens = tokens_of({.text = text, .answers = {{example.prompt.size(), text.size()}}});
  if (begin && (tokens.ids.empty() || tokens.ids.front() != *begin)) {
    tokens.ids.insert(tokens.ids.begin(), *begin);
    tokens.learned.insert(tokens.learned.begin(), false);
  }
  // An end that is the prompt's ends no completion.
  if (tokens.ids.empty() || tokens.ids.back() != *end || !tokens.learned.back()) {
    tokens.ids.push_back(*end);
    tokens.learned.push_back(true);
  }
  return tokens;
}

}  // namespace teratron

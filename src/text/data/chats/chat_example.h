// Reads the examples of chats in files, in the usual forms.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "data/chats/chat_template.h"

namespace teratron {

// A conversation, or a prompt and its completion.
// NOLINTNEXTLINE(bugprone-exception-escape): a JSON value that is moved throws nothing
struct ChatExample {
  nlohmann::ordered_json messages;  // objects with "role" and "content"; null: prompt and completion count
  std::size_t context = 0;          // number of first messages that are never learned, whatever their role
  std::string prompt, completion;
  TemplateExtras extras;  // for the template, with `messages` only
};

// Reads a JSON object with one of
//   "messages": [{"role", "content"}, ..]          OpenAI's form; a content may be a list of parts of type "text"
//   "conversations": [{"from", "value"}, ..]       ShareGPT's; from human or gpt, or roles as above
//   "prompt" with "completion"                     two texts, or two lists of messages
//   "instruction" with "output"                    Alpaca's; also "input", "system", and a "history" of pairs of both
//   "text"                                         all of it is learned
// "system" or "system_prompt" beside a conversation is its first message; "tools" and "documents" are the template's. A
// message may have "tool_calls" (read_tool_calls), as one from function_call does, and then no content. One of "weight"
// 0 or "train" false is not learned. Other members are ignored. UserError, without file and line: the object has none
// of these forms, or holds other content than texts and tools.
ChatExample read_chat_example(std::string_view json);

// Reads a JSON object with "chosen" and "rejected", two answers to a prompt, in that order:
//   two texts, after "prompt", a text
//   two lists of messages, which follow those of "prompt"
//   one message each, where a text is one of the assistant, after those of "prompt", "messages" or "conversations"
// Without such a prompt, the prompt is the beginning that both share, as in TRL's data sets. Messages and the members
// beside them are as above. UserError, without file and line: the object has none of these forms, or holds other
// content than texts; the prompt has another name, such as "question".
std::array<ChatExample, 2> read_preference_example(std::string_view json);

}  // namespace teratron

// A model's chat template (jinja/template.h), rendered with the variables of transformers' apply_chat_template.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tokenizer/chat_template_file.h"

namespace teratron {

// Bytes of a text.
struct ByteRange {
  std::size_t begin = 0, end = 0;
};

// The text of a conversation, and the ranges of the assistant's words in it, in order.
struct ChatText {
  std::string text;
  std::vector<ByteRange> answers;
};

// Variables of a template beside the messages: lists of objects; null: none.
// NOLINTNEXTLINE(bugprone-exception-escape): a JSON value that is moved throws nothing
struct TemplateExtras {
  nlohmann::ordered_json tools{}, documents{};
};

// Thrown if the template refuses a conversation, or needs a feature that jinja/ lacks.
class ChatTemplateError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// The messages as transformers 5 passes them to a template: without members that are null, and with an assistant's
// thoughts ("reasoning_content", "thinking" or "reasoning") under the first two names.
nlohmann::ordered_json messages_for_template(const nlohmann::ordered_json& messages);

// Immutable, and safe to use from many threads at once.
class ChatTemplate {
 public:
  using Time = std::chrono::system_clock::time_point;

  // UserError: the file is no template, or needs a feature that jinja/ lacks.
  explicit ChatTemplate(const ChatTemplateFile& file);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  // The text of a conversation, a list of objects with "role" and "content", as transformers' apply_chat_template
  // writes it. Arguments of calls that are JSON texts (read_tool_calls) become objects, unless the template can write
  // only texts. `begins_answer`: ends with the beginning of the assistant's turn. `now`: the template's date.
  // ChatTemplateError: the template refuses it, or ignores the tools, their calls or the documents.
  std::string render(const nlohmann::ordered_json& messages, bool begins_answer, const TemplateExtras& extras = {},
                     Time now = std::chrono::system_clock::now()) const;
  // Whether the template marks the assistant's words by {% generation %} blocks.
  bool marks_answers(const TemplateExtras& extras = {}) const;
  // The text of render() and the ranges that these blocks write, as transformers' return_assistant_tokens_mask has
  // them.
  ChatText render_with_answers(const nlohmann::ordered_json& messages, const TemplateExtras& extras = {},
                               Time now = std::chrono::system_clock::now()) const;
  // The text that the template writes after the last answer of an assistant; empty: none, or it cannot be determined.
  std::string after_answer() const;

 private:
  struct Insides;
  std::unique_ptr<const Insides> insides_;
};

}  // namespace teratron

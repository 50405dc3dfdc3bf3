// Model's chat template, as transformers' apply_chat_template gives it its variables (jinja/template.h).
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

// Text of a conversation, and where in it the assistant speaks, in order.
struct ChatText {
  std::string text;
  std::vector<ByteRange> answers;
};

// Lists of objects that a template is given beside messages; null: none.
// NOLINTNEXTLINE(bugprone-exception-escape): a JSON value that is moved throws nothing
struct TemplateExtras {
  nlohmann::ordered_json tools{}, documents{};
};

// Refusal of a conversation by the template, or what it needs and we have not.
class ChatTemplateError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// Messages as transformers 5 passes them to a template: members that are null are left out, and what an assistant
// thought ("reasoning_content", "thinking" or "reasoning") has the first two names.
nlohmann::ordered_json messages_for_template(const nlohmann::ordered_json& messages);

// Immutable, and safe to use from many threads at once.
class ChatTemplate {
 public:
  using Time = std::chrono::system_clock::time_point;

  // UserError: the file is no template, or has what we have not.
  explicit ChatTemplate(const ChatTemplateFile& file);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  // Text of a conversation, a list of objects with "role" and "content", as transformers' apply_chat_template writes
  // it. Arguments of tools that are JSON texts (read_tool_calls) become the objects that they say, unless the template
  // can write texts alone. `begins_answer`: with the beginning of the assistant's turn. `now`: the template's date.
  // ChatTemplateError, also where it has no place for tools, their calls or documents.
  std::string render(const nlohmann::ordered_json& messages, bool begins_answer, const TemplateExtras& extras = {},
                     Time now = std::chrono::system_clock::now()) const;
  // Whether the template says by {% generation %} blocks which words are the assistant's.
  bool marks_answers(const TemplateExtras& extras = {}) const;
  // Text of render() with what these blocks write, as transformers' return_assistant_tokens_mask finds it.
  ChatText render_with_answers(const nlohmann::ordered_json& messages, const TemplateExtras& extras = {},
                               Time now = std::chrono::system_clock::now()) const;
  // Text that the template writes after an assistant's last answer, from the answer's end; empty: none, or it is not
  // seen.
  std::string after_answer() const;

 private:
  struct Insides;
  std::unique_ptr<const Insides> insides_;
};

}  // namespace teratron

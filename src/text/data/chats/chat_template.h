// Model's chat template, by minja, whose header only chat_template.cc reads.
#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
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

// Refusal of a conversation by the template, or what it needs and minja has not.
class ChatTemplateError : public std::runtime_error {
 public:
  using runtime_error::runtime_error;
};

// Immutable, and safe to use from many threads at once.
class ChatTemplate {
 public:
  using Time = std::chrono::system_clock::time_point;

  // UserError: the file is no template that minja reads.
  explicit ChatTemplate(const ChatTemplateFile& file);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;

  // Text of a conversation, a list of objects with "role" and "content", as transformers' apply_chat_template writes
  // it. `begins_answer`: with the beginning of the assistant's turn. `now`: the template's date. ChatTemplateError.
  std::string render(const nlohmann::ordered_json& messages, bool begins_answer,
                     Time now = std::chrono::system_clock::now()) const;
  // Whether the template says by {% generation %} blocks which words are the assistant's.
  bool marks_answers() const;
  // Text of render() with what these blocks write, as transformers' return_assistant_tokens_mask finds it.
  ChatText render_with_answers(const nlohmann::ordered_json& messages,
                               Time now = std::chrono::system_clock::now()) const;
  // Text that the template writes after an assistant's last answer, from the answer's end; empty: none, or it is not
  // seen.
  std::string after_answer() const;

 private:
  struct Insides;
  std::unique_ptr<const Insides> insides_;
};

}  // namespace teratron

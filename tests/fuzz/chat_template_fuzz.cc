// A model's chat template, read and given a conversation. The input is the template.
#include "data/chats/chat_template.h"

#include <nlohmann/json.hpp>

#include "fuzz.h"

void teratron::fuzz::parse(std::string_view input) {
  const ChatTemplate form(
      {.text = std::string(input), .path = "a.jinja", .specials = {{"bos_token", "<s>"}, {"eos_token", "</s>"}}});
  const auto messages = nlohmann::ordered_json::parse(
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": " U "}, {"role": "assistant", "content": "A"},
          {"role": "user", "content": "\u00e9"}])");
  form.after_answer();
  try {
    form.render(messages, true, {}, {});
    if (form.marks_answers()) form.render_with_answers(messages, {}, {});
  } catch (const ChatTemplateError&) {
  }
}

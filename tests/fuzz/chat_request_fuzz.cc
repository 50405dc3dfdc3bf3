// The body of /v1/chat/completions, of a model with ChatML's template and tools.
#include "requests.h"

void teratron::fuzz::parse(std::string_view input) {
  static const ChatRules rules = {
      .form = std::make_shared<ChatTemplate>(ChatTemplateFile{
          .text =
              "{% for tool in tools or [] %}{{ tool | tojson }}{% endfor %}"
              "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') }}"
              "{{ message['tool_calls'] | tojson if message['tool_calls'] }}{{ '<|im_end|>' }}{% endfor %}{% if "
              "add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
          .path = "a.jinja",
          .specials = {}}),
      .why_none = {},
      .ends = {}};
  try {
    const CompletionRequest request = read_chat_request(parse_request(input), input, small_tokenizer(), rules, kLimits);
    require(request.prompts.size() == 1, "a chat is one prompt");
  } catch (const ApiError& error) {
    require(error.status() == 400 && !error.answer().body.empty(), "a bad request is answered by status 400");
  }
}

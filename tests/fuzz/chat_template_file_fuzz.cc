// tokenizer_config.json as the place of a chat template.
#include "fuzz.h"
#include "tokenizer/chat_template_file.h"

void teratron::fuzz::parse(std::string_view input) {
  put("tokenizer_config.json", input);
  find_chat_template(folder());
}

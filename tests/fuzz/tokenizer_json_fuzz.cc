// tokenizer.json of all families, and the settings beside it after a line of "\x1e".
#include "tokenizers.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto parts = parts_of(input, '\x1e');
  put("tokenizer_config.json", parts.size() > 1 ? parts[1] : "{}");
  try_tokenizer(Tokenizer::load(put("tokenizer.json", parts.front())));
}

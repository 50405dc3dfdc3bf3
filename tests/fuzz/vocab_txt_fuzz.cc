// WordPiece's vocab.txt, and the settings beside it after a "\x1e".
#include "tokenizers.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto parts = parts_of(input, '\x1e');
  put("tokenizer_config.json", parts.size() > 1 ? parts[1] : "{}");
  try_tokenizer(Tokenizer::load(put("vocab.txt", parts.front())));
}

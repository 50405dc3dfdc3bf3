// GPT-2's vocab.json and merges.txt, with a "\x1e" between them.
#include "tokenizers.h"

void teratron::fuzz::parse(std::string_view input) {
  const auto parts = parts_of(input, '\x1e');
  put("merges.txt", parts.back());
  try_tokenizer(Tokenizer::load(put("vocab.json", parts.front())));
}

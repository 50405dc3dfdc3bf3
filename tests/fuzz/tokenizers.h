// Tokenizers: one to encode with, and the use of one that was read from a fuzzer's files.
#pragma once

#include "fuzz.h"
#include "tokenizer/bpe/bpe_trainer.h"
#include "tokenizer/tokenizer.h"

namespace teratron::fuzz {

// A byte-level BPE of some English.
inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = [] {
    const std::string_view text =
        "the cat that sat on the other mat is the one that the others saw there, all the time";
    return Tokenizer(train_bpe({&text, 1}, {.vocab_size = 280}));
  }();
  return tokenizer;
}

inline void try_tokenizer(const Tokenizer& tokenizer) {
  using namespace std::string_view_literals;
  constexpr std::string_view kText =
      "Hello  world's 123456, caf\u00e9 <|endoftext|> [MASK] <s> \u4e2d\u6587 e\u0301\r\n\n\t\xff\xf0\x9f end"sv;
  for (const SpecialText special : {SpecialText::kPlain, SpecialText::kToken}) {
    const std::vector<std::int32_t> ids = tokenizer.encode(kText, special);
    for (const std::int32_t id : ids) {
      require(id >= 0 && id < tokenizer.vocab_size(), "ids are in the vocabulary");
      tokenizer.bytes_of(id);
    }
    tokenizer.decode(ids);
    for (const TokenSpan& span : tokenizer.encode_with_offsets(kText, special)) {
      require(span.begin <= span.end && span.end <= kText.size(), "a token's bytes are in the text");
    }
  }
  tokenizer.hash();
}

}  // namespace teratron::fuzz

// One text or two as a sequence of a BERT.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/host/threads.h"
#include "tasks/examples.h"
#include "tokenizer/text_frame.h"

namespace teratron {

// UserError: the tokenizer frames no texts (tokenizer/text_frame.h); a sequence of `seq_length` tokens has no room for
// a token of each text.
TextFrame frame_of_pairs(const Tokenizer& tokenizer, std::int64_t seq_length, bool has_second = true);

struct TokenPair {
  std::span<const std::int32_t> a, b;
};

// Cuts tokens off the end of the longer side until both together have `most`, and once they are equal off both in turn.
// If `most` is odd, the side that was longer (b, if none was) keeps one more. This is "longest_first" of Hugging Face's
// tokenizers, and BERT's own rule except for that one token. Returns whether anything was cut.
bool cut_longer_side(TokenPair& pair, std::int64_t most);

using TokenLists = std::vector<std::vector<std::int32_t>>;

// Tokenises `count` texts with all threads; text_of(i) gives text number i, a string or a view of one.
template <class TextOf>
TokenLists encode_texts(const Tokenizer& tokenizer, std::int64_t count, const TextOf& text_of) {
  constexpr std::int64_t kTextsAtATime = 64;
  TokenLists lists(static_cast<std::size_t>(count));
  parallel_for(count, kTextsAtATime, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto& text = text_of(static_cast<std::size_t>(i));
      std::vector<std::int32_t>& ids = lists[static_cast<std::size_t>(i)];
      tokenizer.encode_to(text, ids);
      ids.shrink_to_fit();
    }
  });
  return lists;
}

// Writes each pair as a sequence, in BERT's frame [CLS] a [SEP] b [SEP], or its a alone, into `examples`: sets its ids,
// begins and seconds, and leaves its labels as they are.
void write_sequences(std::span<const TokenPair> pairs, const TextFrame& frame, TaskExamples& examples,
                     bool has_second = true);

// Part of TaskSet::notes, "; 12 rows left out"; empty for 0. `noun`: in the singular, or empty; `rest`: the words after
// it.
std::string note_of(std::int64_t count, std::string_view noun, std::string_view rest = {});

}  // namespace teratron

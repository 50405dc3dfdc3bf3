#include "tasks/pair_encoding.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"

namespace teratron {
namespace {

constexpr std::int64_t kSequencesAtATime = 256;

}  // namespace

TextFrame frame_of_pairs(const Tokenizer& tokenizer, std::int64_t seq_length, bool has_second) {
  const std::optional<TextFrame> frame = text_frame(tokenizer);
  if (!frame) {
    throw_user_error(
        "the tokenizer is BPE without RoBERTa's special tokens, and tasks need BERT's [CLS] and [SEP]; use "
        "the model's own files (vocab.txt, or tokenizer.json)");
  }
  if (!has_second && seq_length < TextFrame::kTokensOfOne + 1) {
    throw_user_error("--seq-length {} is too short for a text: [CLS] A [SEP] needs {} tokens at least", seq_length,
                     TextFrame::kTokensOfOne + 1);
  }
  const std::int64_t shortest = frame->tokens_of_two() + 2;
  if (has_second && seq_length < shortest) {
    throw_user_error("--seq-length {} is too short for a pair of texts: [CLS] A [SEP] B [SEP] needs {} tokens at least",
                     seq_length, shortest);
  }
  return *frame;
}

bool cut_longer_side(TokenPair& pair, std::int64_t most) {
  if (std::ssize(pair.a) + std::ssize(pair.b) <= most) return false;
  auto& longer = pair.a.size() > pair.b.size() ? pair.a : pair.b;
  auto& shorter = pair.a.size() > pair.b.size() ? pair.b : pair.a;
  const std::int64_t of_shorter = std::min<std::int64_t>(std::ssize(shorter), most / 2);
  shorter = shorter.first(static_cast<std::size_t>(of_shorter));
  longer = longer.first(static_cast<std::size_t>(most - of_shorter));
  return true;
}

void write_sequences(std::span<const TokenPair> pairs, const TextFrame& frame, TaskExamples& examples,
                     bool has_second) {
  const std::int64_t frame_tokens = has_second ? frame.tokens_of_two() : TextFrame::kTokensOfOne;
  examples.begins.assign(pairs.size() + 1, 0);
  examples.seconds.resize(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    examples.seconds[i] = static_cast<std::int32_t>(pairs[i].a.size()) + 1 + (has_second ? frame.between : 1);
    examples.begins[i + 1] = examples.begins[i] + std::ssize(pairs[i].a) + std::ssize(pairs[i].b) + frame_tokens;
  }
  examples.ids.resize(static_cast<std::size_t>(examples.begins.back()));
  parallel_for(std::ssize(pairs), kSequencesAtATime, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      auto at = examples.ids.begin() + examples.begins[i];
      *at++ = frame.begin;
      at = std::ranges::copy(pairs[i].a, at).out;
      if (has_second) {
        at = std::fill_n(at, frame.between, frame.end);
        at = std::ranges::copy(pairs[i].b, at).out;
      }
      *at = frame.end;
    }
  });
}

std::string note_of(std::int64_t count, std::string_view noun, std::string_view rest) {
  if (count == 0) return "";
  return fmt::format("; {}{}{}", noun.empty() ? readable_integer(count) : counted(count, noun), rest.empty() ? "" : " ",
                     rest);
}

}  // namespace teratron

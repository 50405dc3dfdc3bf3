// LAMBADA (Paperno et al., arXiv 1606.06031): prediction of the last word of a passage, by the Megatron-LM paper's
// strict rule (Appendix E.2): raw text, the whole word, and every token of it the likeliest after the text before it.
// The likeliest is argmax over the model's whole vocabulary, also beyond the tokenizer's; of equal logits the lowest
// id. So do lm-evaluation-harness and Megatron-LM.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eval/continuations.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// Passages up to their last words, then the tokens of a space and the word.
struct ClozeExamples {
  std::vector<Continuation> examples;
  std::int64_t too_short = 0;  // passages of less than two words: left out
  std::int64_t cut = 0;        // passages longer than the model's context: without their beginning
};

// Makes examples (continuation_of). The word follows the last ASCII white space of the passage; white space around the
// text before it is dropped. UserError: no passage with two words; a word longer than `most_tokens`, with the number of
// its passage, from 1.
ClozeExamples cloze_examples(std::span<const std::string> passages, const Tokenizer& tokenizer,
                             std::int64_t most_tokens);

struct ClozeResult {
  std::int64_t examples = 0;
  std::int64_t correct = 0;
  double log_probability = 0;  // of the words, summed over the examples; nats
  double accuracy() const { return 100.0 * static_cast<double>(correct) / static_cast<double>(examples); }
};

// Scores examples, in order of length, shared by the copies of the model. Every rank of the mesh calls it and gets the
// whole result. `found`: [examples], whether each word was found. done(share): progress. UserError: the loss of a
// passage is not finite.
ClozeResult score_cloze(LanguageModel& model, std::span<const Continuation> examples,
                        const std::function<void(double share)>& done = {}, std::vector<bool>* found = nullptr);

}  // namespace teratron

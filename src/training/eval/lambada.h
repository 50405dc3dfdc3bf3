// LAMBADA (Paperno et al., arXiv 1606.06031): whether a model finds the last word of a passage, by the Megatron-LM
// paper's strict rule (Appendix E.2): the raw text; the whole word; every token of it the likeliest one after the text
// before it. The likeliest is argmax's: of equal logits that of the lowest id, over all of the model's vocabulary, be
// it larger than the tokenizer's, as in lm-evaluation-harness and Megatron-LM.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/language_model.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// The tokens of the passage up to its last word, then those of a space and the word.
struct ClozeExample {
  std::vector<std::int32_t> ids;
  std::int64_t word_tokens = 0;  // of the word, at the end
  std::int64_t passage = 0;      // its number in the file, from 1
};

struct ClozeExamples {
  std::vector<ClozeExample> examples;
  std::int64_t too_short = 0;  // passages of a single word, or none: left out
  std::int64_t cut = 0;        // passages longer than the model's context, which lose their beginning
};

// The word is what follows the last white space of the passage (that of ASCII), and white space around the text before
// it is dropped. UserError: no passage with two words; a word longer than `most_tokens`.
ClozeExamples cloze_examples(std::span<const std::string> passages, const Tokenizer& tokenizer,
                             std::int64_t most_tokens);

struct ClozeResult {
  std::int64_t examples = 0;
  std::int64_t correct = 0;
  double log_probability = 0;  // of the words, summed over the examples; nats
  double accuracy() const { return 100.0 * static_cast<double>(correct) / static_cast<double>(examples); }
};

// Every rank of the model's mesh calls it, and gets the whole result: copies of the model share the examples out, which
// run in order of length. found, where given: [examples], whether each word was. done(share): on the way.
// UserError: the loss of a passage is not finite.
ClozeResult score_cloze(LanguageModel& model, std::span<const ClozeExample> examples,
                        const std::function<void(double share)>& done = {}, std::vector<bool>* found = nullptr);

}  // namespace teratron

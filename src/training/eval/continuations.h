// Log-probabilities of texts that continue other texts, such as a passage's last word or the choices of a question.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/language_model.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

struct Continuation {
  std::vector<std::int32_t> ids;  // with the tokens before it
  std::int64_t scored = 0;        // its own tokens, at the end: fewer than ids
  std::int64_t number = 0;        // of the text in its file, from 1, for messages
};

// Continuation of `context` by `more`: the tokens of the context, then those that both texts in one have after as many,
// since a tokenizer may put a space before every text. The token that begins texts comes first, where the tokenizer
// has one; an empty context is it, or the token that ends texts. UserError: the tokenizer has neither. Nothing is
// scored where `more` adds no token.
Continuation continuation_of(const Tokenizer& tokenizer, const std::string& context, const std::string& more);

struct ContinuationScores {
  std::vector<double> log_probabilities;  // of all of a continuation's tokens together; nats
  std::vector<bool> are_likeliest;        // whether argmax takes each of its tokens
};

// Scores continuations, in order of length, shared by the copies of the model. Every rank of the mesh calls it and gets
// the whole result. done(share): progress. UserError: a loss is not finite; `item` names the text: "passage".
ContinuationScores score_continuations(LanguageModel& model, std::span<const Continuation> continuations,
                                       std::string_view item, const std::function<void(double share)>& done = {});

}  // namespace teratron

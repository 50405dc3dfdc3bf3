// Token and learned position embeddings with dropout (GPT-2). The token table is also the output projection's weight.
#pragma once

#include "nn/parameter.h"
#include "nn/step.h"

namespace teratron {

struct Embedding {
  Parameter tokens;     // [padded vocabulary, hidden]
  Parameter positions;  // [max positions, hidden]
  double dropout;

  Embedding(std::int64_t vocab, std::int64_t padded_vocab, std::int64_t max_positions, std::int64_t hidden,
            double hidden_dropout)
      : tokens{.name = "embedding.tokens.weight",
               .shape = {padded_vocab, hidden},
               .init = Init::kNormal,
               .padding_rows = padded_vocab - vocab,
               .decay = true,
               .hugging_face = "transformer.wte.weight"},
        positions{.name = "embedding.positions.weight",
                  .shape = {max_positions, hidden},
                  .init = Init::kNormal,
                  .decay = true,
                  .hugging_face = "transformer.wpe.weight"},
        dropout(hidden_dropout) {}

  void visit(const ParameterVisitor& visitor) {
    visitor(tokens);
    visitor(positions);
  }

  // y[batch, tokens, hidden] from ids i32 [batch, tokens]
  void forward(const Step& step, TensorRef y, TensorRef ids) const {
    step.backend.embedding_forward({.y = y,
                                    .ids = ids,
                                    .tokens = tokens.value,
                                    .positions = positions.value,
                                    .first_position = step.first_position,
                                    .dropout = mask(step)});
  }

  // The output projection has already put its share into the token table's gradient.
  void backward(const Step& step, TensorRef dy, TensorRef ids) const {
    step.backend.embedding_backward({.dtokens = tokens.gradient,
                                     .dpositions = positions.gradient,
                                     .dy = dy,
                                     .ids = ids,
                                     .first_position = step.first_position,
                                     .dropout = mask(step),
                                     .accumulate_tokens = true,
                                     .accumulate_positions = step.accumulate});
  }

 private:
  Dropout mask(const Step& step) const { return step.dropout(dropout, RandomPurpose::kEmbeddingDropout, 0); }
};

}  // namespace teratron

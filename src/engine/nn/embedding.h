// Token embeddings, with learned positions (GPT-2, BERT) or without, and dropout. The token table may also be the
// weight of the output projection.
#pragma once

#include <optional>

#include "nn/layer_pass.h"
#include "nn/parameter.h"

namespace teratron {

struct Embedding {
  Parameter tokens;                    // [padded vocabulary, hidden], split along the vocabulary, over `stages`, too
  std::optional<Parameter> positions;  // [max positions, hidden]
  double dropout;

  // max_positions 0: no positions. `stages`: those of a pipeline that share the vocabulary out.
  Embedding(std::int64_t vocab, std::int64_t padded_vocab, std::int64_t max_positions, std::int64_t hidden,
            double dropout_after, GroupRank group, GroupRank stages = {})
      : tokens{.name = "embedding.tokens.weight",
               .shape = {padded_vocab / (group.size * stages.size), hidden},
               .init = Init::kNormal,
               .padding_rows = padded_vocab - vocab,
               .takes_tiles = true,
               .decay = true,
               .split = {.axis = 0},
               .group = {stages.rank * group.size + group.rank, stages.size * group.size},
               .over_stages = stages.size > 1},
        dropout(dropout_after) {
    if (max_positions == 0) return;
    positions = Parameter{.name = "embedding.positions.weight",
                          .shape = {max_positions, hidden},
                          .init = Init::kNormal,
                          .decay = true,
                          .group = group};
  }

  void visit(const ParameterVisitor& visitor) {
    visitor(tokens);
    if (positions) visitor(*positions);
  }

  // Id of the first entry of the vocabulary that this rank holds.
  std::int64_t vocab_begin() const { return tokens.group.rank * tokens.shape[0]; }

  // y, this rank's rows of the residual stream, from ids i32 [batch, tokens]. position_ids, of the same shape, are null
  // where positions are those of the sequence. `full` is workspace [batch, tokens, hidden]; it may be y where that has
  // all rows.
  void forward(const LayerPass& pass, TensorRef y, TensorRef full, TensorRef ids, TensorRef position_ids = {}) const {
    look_up(pass, full, ids, position_ids);
    drop_out(pass, y, full);
  }

  // The first part of forward: the sum over the pass's ranks of the rows that each holds; the first rank adds the
  // positions.
  void look_up(const LayerPass& pass, TensorRef full, TensorRef ids, TensorRef position_ids = {}) const {
    pass.backend.embedding_forward({.y = full,
                                    .ids = ids,
                                    .tokens = tokens.value,
                                    .positions = positions && pass.tensor.rank() == 0 ? positions->value : TensorRef(),
                                    .first_position = pass.first_position,
                                    .vocab_begin = vocab_begin(),
                                    .position_ids = positions ? position_ids : TensorRef()});
    pass.start_sum(full).wait();
  }

  // The second: dropout of this rank's rows of the sum.
  void drop_out(const LayerPass& pass, TensorRef y, TensorRef full) const {
    const TensorRef sum = pass.own_rows(full);
    if (mask(pass).active()) {  // dropout is the same operation forward and backward
      pass.backend.dropout_backward({.dbranch = sum, .dsum = sum, .dropout = mask(pass)});
    }
    if (sum.data != y.data) pass.backend.copy(y, sum);
  }

  // dy, the gradient of the stream, may be overwritten; `full` is workspace, as in forward. accumulate_tokens: adds to
  // the token table's gradient, which already holds something, for instance the output projection's share.
  void backward(const LayerPass& pass, TensorRef dy, TensorRef full, TensorRef ids, bool accumulate_tokens,
                TensorRef position_ids = {}) const {
    look_up_backward(pass, drop_out_backward(pass, dy, full), ids, accumulate_tokens, position_ids);
  }

  // Returns the gradient of look_up's sum on every rank, which lies in dy or `full`.
  TensorRef drop_out_backward(const LayerPass& pass, TensorRef dy, TensorRef full) const {
    const TensorRef masked = pass.sequence_parallel ? pass.own_rows(full) : dy;
    if (mask(pass).active()) {
      pass.backend.dropout_backward({.dbranch = masked, .dsum = dy, .dropout = mask(pass)});
    } else if (masked.data != dy.data) {
      pass.backend.copy(masked, dy);
    }
    pass.gather_rows(full);
    return pass.sequence_parallel ? full : dy;
  }

  // Gradients of the rows and positions that this rank holds.
  void look_up_backward(const LayerPass& pass, TensorRef dsum, TensorRef ids, bool accumulate_tokens,
                        TensorRef position_ids = {}) const {
    pass.backend.embedding_backward({.dtokens = tokens.gradient,
                                     .dpositions = positions ? positions->gradient : TensorRef(),
                                     .dy = dsum,
                                     .ids = ids,
                                     .first_position = pass.first_position,
                                     .vocab_begin = vocab_begin(),
                                     .position_ids = positions ? position_ids : TensorRef(),
                                     .accumulate_tokens = accumulate_tokens,
                                     .accumulate_positions = pass.accumulate});
  }

 private:
  Dropout mask(const LayerPass& pass) const {
    return pass.stream_dropout(dropout, RandomPurpose::kEmbeddingDropout, 0);
  }
};

}  // namespace teratron

#include "tokenizer/text_frame.h"

#include "tokenizer/bpe/roberta.h"

namespace teratron {

std::optional<TextFrame> text_frame(const Tokenizer& tokenizer) {
  if (tokenizer.kind() == TokenizerKind::kWordPiece) {
    const WordPieceModel& model = tokenizer.word_piece();
    return TextFrame{.begin = model.classify, .end = model.separate, .mask = model.mask, .pad = model.pad};
  }
  const std::optional<RobertaTokens> tokens = roberta_tokens(tokenizer.model());
  if (!tokens) return std::nullopt;
  return TextFrame{.begin = tokens->begin, .end = tokens->end, .mask = tokens->mask, .pad = tokens->pad, .between = 2};
}

}  // namespace teratron

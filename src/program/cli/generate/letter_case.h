// Check that a sentence-transformer's tokenizer has the case of its texts.
#pragma once

#include <filesystem>

#include "base/error.h"
#include "checkpoint/hugging_face/sentence_transformer.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

// UserError: the folder's texts are in lower case, and the tokenizer is cased. `load`: the folder, for the message.
inline void require_case_of(const SentenceTransformer& folder, const Tokenizer& tokenizer,
                            const std::filesystem::path& load) {
  if (!folder.lower_case || tokenizer.kind() != TokenizerKind::kWordPiece || tokenizer.word_piece().lower_case) return;
  throw_user_error(
      "'{}' is a sentence-transformer of texts in lower case (do_lower_case), and its tokenizer is cased; give an "
      "uncased one by --tokenizer DIR",
      load.string());
}

}  // namespace teratron

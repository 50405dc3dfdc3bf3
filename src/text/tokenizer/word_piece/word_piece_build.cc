// Checks the content of files and makes a model of it.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "tokenizer/word_piece/word_piece_files.h"

namespace teratron {

void finish_word_piece_model(WordPieceModel& model, WordPieceNames names, std::string_view file) {
  std::string missing;
  names.each(model, [&](const char*, const std::string& text, std::int32_t& id) {
    const auto found = std::ranges::find(model.tokens, text);
    if (found == model.tokens.end()) {
      missing += (missing.empty() ? "" : ", ") + text;
      return;
    }
    id = static_cast<std::int32_t>(found - model.tokens.begin());
    model.special.push_back(id);
  });
  if (!missing.empty()) {
    throw_user_error(
        "{} has no token {}; a WordPiece vocabulary needs [UNK], [PAD], [CLS], [SEP] and [MASK], by these names or by "
        "those that tokenizer_config.json gives them. Is the file complete?",
        file, missing);
  }
  std::ranges::sort(model.special);
  const auto repeated = std::ranges::unique(model.special);
  model.special.erase(repeated.begin(), repeated.end());
  validate(model, file);
}

}  // namespace teratron

// Settings beside WordPiece's files that are not part of the model: they must not change the ids.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_piece/word_piece_files.h"

namespace teratron {
namespace {

// Classes that make BERT's tokens.
constexpr auto kWordPieceClasses = std::to_array<std::string_view>(
    {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "MobileBertTokenizer", "LxmertTokenizer",
     "ConvBertTokenizer", "SqueezeBertTokenizer", "LayoutLMTokenizer", "RetriBertTokenizer",
     "DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer", "DPRReaderTokenizer", "RealmTokenizer",
     "MegatronBertTokenizer"});

}  // namespace

void require_word_piece_class(const TokenizerConfig& config) { config.require_class(kWordPieceClasses); }

void require_word_piece(const TokenizerConfig& config, std::span<const std::string> tokens) {
  if (!config.flag("do_basic_tokenize").value_or(true)) config.refuse("it sets \"do_basic_tokenize\" to false");
  for (const AddedToken& added : config.added_tokens()) {
    const std::string& text = added.token.text;
    const bool is_known = added.token.id >= 0 && std::cmp_less(added.token.id, tokens.size()) &&
                          tokens[static_cast<std::size_t>(added.token.id)] == text;
    if (!is_known) {
      config.refuse(fmt::format("it adds token '{}' with id {}, which the vocabulary has not; {}", text, added.token.id,
                                kSaveAsJson));
    }
    if (!added.refused.empty()) config.refuse(fmt::format("its added token '{}' sets \"{}\"", text, added.refused));
    if (is_written_like_a_special_token(text)) continue;
    config.refuse(fmt::format("its added token '{}' is a word too, and would be found within words", text));
  }
  config.require_tokens(tokens);
}

}  // namespace teratron

// The files of a WordPiece tokenizer: Google's vocab.txt, with Hugging Face's tokenizer_config.json beside it.
// tokenizer_json.h reads tokenizer.json. Windows' line ends and a byte order mark are allowed. Refused: missing special
// tokens (all are named), a token twice, an empty line, white space after a token, added tokens that the vocabulary
// lacks or that are words.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

class TokenizerConfig;

// The names of the special tokens in settings, and their default texts.
struct WordPieceNames {
  std::string unknown = "[UNK]", pad = "[PAD]", classify = "[CLS]", separate = "[SEP]", mask = "[MASK]";

  // The key in tokenizer_config.json, and the member of the model.
  template <class Callback>
  void each(WordPieceModel& model, const Callback& callback) {
    callback("unk_token", unknown, model.unknown);
    callback("pad_token", pad, model.pad);
    callback("cls_token", classify, model.classify);
    callback("sep_token", separate, model.separate);
    callback("mask_token", mask, model.mask);
  }
};

// The usual texts, but for those that tokenizer_config.json names.
WordPieceNames word_piece_names(const TokenizerConfig& config);

// Finds the special tokens in model.tokens, adds them to model.special, and validates. UserError lists all missing
// ones.
void finish_word_piece_model(WordPieceModel& model, WordPieceNames names, std::string_view file);

// UserError if the settings beside the files describe another tokenizer than BERT's: another class, other words, or
// tokens that `tokens` lacks or that would be found inside words.
void require_word_piece_class(const TokenizerConfig& config);
void require_word_piece(const TokenizerConfig& config, std::span<const std::string> tokens);

// Reads a token a line, the first with id 0. UserError: an empty line, a token twice, missing special tokens, bytes
// that are not UTF-8.
WordPieceModel read_word_piece_vocabulary(const std::filesystem::path& path);

// Writes vocab.txt, tokenizer.json and tokenizer_config.json to an existing folder.
void write_word_piece_model(const WordPieceModel& model, const std::filesystem::path& folder);

}  // namespace teratron

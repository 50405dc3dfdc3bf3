// The files a WordPiece tokenizer is kept in: Google's vocab.txt, with Hugging Face's tokenizer_config.json beside it.
// tokenizer.json is read by tokenizer_json.h.
#pragma once

#include <array>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

class TokenizerConfig;

// What the special tokens are called in a file of settings, with the texts that they have where nothing is said.
struct WordPieceNames {
  std::string unknown = "[UNK]", pad = "[PAD]", classify = "[CLS]", separate = "[SEP]", mask = "[MASK]";

  // Each with its key in tokenizer_config.json and its place in the model.
  template <class Callback>
  void each(WordPieceModel& model, const Callback& callback) {
    callback("unk_token", unknown, model.unknown);
    callback("pad_token", pad, model.pad);
    callback("cls_token", classify, model.classify);
    callback("sep_token", separate, model.separate);
    callback("mask_token", mask, model.mask);
  }
};

// Finds the special tokens among model.tokens, adds them to model.special, and validates. UserError that lists all that
// are missing.
void finish_word_piece_model(WordPieceModel& model, WordPieceNames names, std::string_view file);

// UserError where what stands beside the files describes another tokenizer than BERT's: another class; words that are
// made otherwise, tokens that `tokens` has not or that would be found within words.
void require_word_piece_class(const TokenizerConfig& config);
void require_word_piece(const TokenizerConfig& config, std::span<const std::string> tokens);

// A token a line, the first with id 0. UserError: an empty line, a token twice, special tokens that are missing, bytes
// that are not UTF-8.
WordPieceModel read_word_piece_vocabulary(const std::filesystem::path& path);

// vocab.txt, tokenizer.json and tokenizer_config.json in a folder that exists.
void write_word_piece_model(const WordPieceModel& model, const std::filesystem::path& folder);

}  // namespace teratron

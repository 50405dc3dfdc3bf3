// Which files a tokenizer is kept in, and so which kind it is.
#pragma once

#include <filesystem>
#include <variant>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

// Finds the files in a folder, or beside the one file named, and reads them: as Tokenizer::load says.
std::variant<BpeModel, WordPieceModel> read_tokenizer_model(const std::filesystem::path& folder_or_file);

}  // namespace teratron

// The files of a byte-level BPE tokenizer: GPT-2's vocabulary and merges. tokenizer_json.h reads Hugging Face's
// tokenizer.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/vocabulary.h"

namespace teratron {

class TokenizerConfig;

// The content of the files, not yet checked.
struct BpeSource {
  struct Merge {
    std::string left, right;  // in the byte alphabet
    std::size_t number;       // position in the file
  };
  std::vector<ListedToken> vocabulary;  // in the byte alphabet
  std::vector<ListedToken> added;       // as written in a text
  std::vector<Merge> merges;
  std::string vocabulary_file, merges_file;
  std::string merge_unit;  // the unit of a merge's number: "line" or "merge"
  bool add_prefix_space = false;
  std::string end_of_text = std::string(kEndOfText);
};

// Makes a model. UserError unless the ids are 0, 1, ... without gaps, every merge names tokens of the vocabulary and
// makes one, and validate() accepts the result; an added token that is a byte or made by merges is refused, too. Tokens
// that no merge makes are special if they were added or are written like one, "<...>" or "[...]".
BpeModel build_bpe_model(const BpeSource& source);

// Applies the settings beside the files: added tokens, the prefix space, the end of text. `is_pair`: beside vocab.json
// and merges.txt, not tokenizer.json, which has its own settings for added text. UserError: they describe another kind.
void take_config(const TokenizerConfig& config, BpeSource& source, bool is_pair);
// The tokens in `added`, as transformers finds them. UserError, naming `file`: one is found inside words.
void take_added_tokens(std::vector<AddedToken> added, std::string_view file, BpeSource& source);

// Reads GPT-2's pair of files with the settings beside them. UserError: missing or invalid.
BpeModel read_vocabulary_and_merges(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

// Writes vocab.json, merges.txt, tokenizer.json and tokenizer_config.json to an existing folder.
void write_bpe_model(const BpeModel& model, const std::filesystem::path& folder);

}  // namespace teratron

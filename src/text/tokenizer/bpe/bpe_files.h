// The files a byte-level BPE tokenizer is kept in: GPT-2's vocabulary and merges. Hugging Face's tokenizer.json is read
// by tokenizer_json.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/vocabulary.h"

namespace teratron {

class TokenizerConfig;

// A tokenizer as its files spell it, before anything is checked.
struct BpeSource {
  struct Merge {
    std::string left, right;  // in the byte alphabet
    std::size_t number;       // where it stands in the file
  };
  std::vector<ListedToken> vocabulary;  // in the byte alphabet
  std::vector<ListedToken> added;       // as they stand in a text
  std::vector<Merge> merges;
  std::string vocabulary_file, merges_file;
  std::string merge_unit;  // what a merge's number counts: "line" or "merge"
  bool add_prefix_space = false;
  std::string end_of_text = std::string(kEndOfText);
};

// UserError unless the ids are 0, 1, ... without gaps, every merge names tokens of the vocabulary and makes one, and
// validate() accepts the outcome; an added token that is a byte or made by merges is refused too. Tokens that no merge
// makes are special if they were added or are written like one,
// "<...>" or "[...]".
BpeModel build_bpe_model(const BpeSource& source);

// What stands beside the files: added tokens, the prefix space, the end of text. `is_pair`: beside vocab.json and
// merges.txt, and not tokenizer.json, which says itself what is added to a text. UserError: it describes another kind.
void take_config(const TokenizerConfig& config, BpeSource& source, bool is_pair);
// The tokens that `added` lists, as transformers finds them. UserError, naming `file`: one is found within words.
void take_added_tokens(std::vector<AddedToken> added, std::string_view file, BpeSource& source);

// GPT-2's pair of files, with what stands beside them. UserError: missing or not what they should be.
BpeModel read_vocabulary_and_merges(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

// vocab.json, merges.txt, tokenizer.json and tokenizer_config.json in a folder that exists.
void write_bpe_model(const BpeModel& model, const std::filesystem::path& folder);

}  // namespace teratron

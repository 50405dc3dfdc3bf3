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
};

// UserError unless the ids are 0, 1, ... without gaps, every merge names tokens of the vocabulary and makes one, and
// validate() accepts the outcome. Tokens that no merge makes are special if they were added or are written like one,
// "<...>" or "[...]".
BpeModel build_bpe_model(const BpeSource& source);

// GPT-2's pair of files. UserError: missing or not what they should be.
BpeModel read_vocabulary_and_merges(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

// vocab.json, merges.txt, tokenizer.json and tokenizer_config.json in a folder that exists.
void write_bpe_model(const BpeModel& model, const std::filesystem::path& folder);

}  // namespace teratron

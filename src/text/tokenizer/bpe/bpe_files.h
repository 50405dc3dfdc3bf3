// The files of a BPE tokenizer: GPT-2's pair (vocab.json or encoder.json, with merges.txt or vocab.bpe), and Hugging
// Face's tokenizer.json with exactly the steps of a family (README.md). These steps count, also where transformers'
// class of that name would put its own. Refused by name, since they would change ids:
// - Unigram; every other expression, normalizer, pre-tokenizer or decoder; byte_fallback without all 256 bytes;
// - post-processors that add more than one token before the text;
// - added tokens that would be found inside words (but runs of spaces), or in a text that the normalizer changed;
// - a token that no merge makes and that is no byte, no added token and not written like a special one (<...>, [...]).
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/vocabulary.h"

namespace teratron {

class TokenizerConfig;

// The content of the files, not yet checked.
struct BpeSource {
  struct Merge {
    std::string left, right;  // as in the vocabulary
    std::size_t number;       // position in the file
  };
  std::vector<ListedToken> vocabulary;  // in the byte alphabet; SentencePiece's with "▁" for spaces
  std::vector<ListedToken> added;       // as written in a text
  std::vector<std::int64_t> found;      // ids of added ones that are found in every text
  std::vector<Merge> merges;
  std::string vocabulary_file, merges_file;
  std::string merge_unit;  // the unit of a merge's number: "line" or "merge"
  BpePipeline pipeline;
  std::string end_of_text = std::string(kEndOfText);
};

// Makes a model. UserError unless the ids are 0, 1, ... without gaps, every merge names tokens of the vocabulary and
// makes one, and validate() accepts the result; an added token that is a byte or made by merges is refused, too. Tokens
// that no merge makes are special if they were added or are written like one, "<...>" or "[...]".
BpeModel build_bpe_model(const BpeSource& source);

// Applies the settings beside the files: added tokens, the prefix space, the end of text. `is_pair`: beside vocab.json
// and merges.txt, not tokenizer.json, which has its own settings for added text. UserError: they describe another kind.
void take_config(const TokenizerConfig& config, BpeSource& source, bool is_pair);
// UserError: the class that the settings name needs special tokens that the model lacks.
void require_tokens_of_class(const TokenizerConfig& config, const BpeModel& model);
// The tokens in `added`, as transformers finds them. UserError, naming `file`: one is found inside words, and is no run
// of spaces; or after a normalizer that changes what is found.
void take_added_tokens(std::vector<AddedToken> added, std::string_view file, BpeSource& source);

// Reads the steps beside the model. UserError: one is of no supported family.
BpePipeline read_bpe_pipeline(simdjson::dom::object root, std::string_view file);
// The members of a tokenizer.json for the model's steps; `beginning` is the id of the pipeline's token, if the
// vocabulary has it.
std::string bpe_pipeline_json(const BpeModel& model, std::optional<std::int32_t> beginning);
// UserError: `file` is of another kind than those supported.
[[noreturn]] void refuse_bpe(std::string_view file, std::string_view why);

// Reads GPT-2's pair of files with the settings beside them. UserError: missing or invalid.
BpeModel read_vocabulary_and_merges(const std::filesystem::path& vocabulary, const std::filesystem::path& merges);

// The spelling of each token in files: of the byte alphabet, or with "▁" for spaces; special and found ones as in a
// text.
std::vector<std::string> spell_tokens(const BpeModel& model);

// Writes tokenizer.json and tokenizer_config.json to an existing folder, and of GPT-2's kind vocab.json and merges.txt.
void write_bpe_model(const BpeModel& model, const std::filesystem::path& folder);

}  // namespace teratron

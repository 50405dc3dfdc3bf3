// Text to tokens and back. The files decide between two kinds:
//
// BPE (Sennrich et al. 2016), either byte-level, exactly as GPT-2 (Radford et al. 2019, section 2.2), GPT-NeoX, Llama
// 3, Qwen 2 and 3 and SmolLM do it: text is split into words by the family's pattern, each word's bytes are merged pair
// by pair in the order of the merge list. Or SentencePiece's as in Llama 2 and Mistral: characters are merged, and
// those without a token are written as bytes. Decoding gives the text back, except for what the family's files change:
// Unicode's composed form (NFC), "▁" for a space, bytes outside of UTF-8 that the vocabulary lacks.
//
// WordPiece, exactly as BERT does it (Devlin et al. 2018, section 3): text is normalized (bert_normalizer.h), cut at
// white space and around punctuation, and each word is cut into the longest tokens there are. Decoding gives words, not
// the same text: case, accents, spaces and what is [UNK] are lost. Bytes that are not valid UTF-8 are dropped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/token_span.h"
#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

// kBytePair is BPE of either sort.
enum class TokenizerKind { kBytePair, kWordPiece };

// Treatment of special tokens, such as "<|endoftext|>" or "[MASK]", in the text.
enum class SpecialText {
  kPlain,  // text like any other: the rule of GPT-2's evaluations, and safe for text from strangers
  kToken,  // the special token (the longest one if several match)
};

// Immutable, cheap to copy (copies share the tables), and safe to use from many threads at once.
class Tokenizer {
 public:
  // Reads a folder or one of its files by name. In a folder, the first of these counts:
  // - `tokenizer.json`, BPE or WordPiece;
  // - GPT-2's BPE: `vocab.json` (or `encoder.json`) with `merges.txt` (or `vocab.bpe`);
  // - WordPiece: `vocab.txt`, a token a line. A `tokenizer_config.json` beside it sets `do_lower_case`,
  //   `strip_accents` (default: as lower case), `tokenize_chinese_chars`, and names of special tokens. Without
  //   `do_lower_case`, the model is uncased if no token but special ones has a letter that lower case would change.
  // Other files of Hugging Face's tools are read as transformers does, or refused by name (tokenizer_config.h).
  // UserError: missing or invalid files, or another kind.
  static Tokenizer load(const std::filesystem::path& folder_or_file);

  explicit Tokenizer(BpeModel model);
  explicit Tokenizer(WordPieceModel model);

  TokenizerKind kind() const;

  // The tokens of the text only: WordPiece adds no [CLS] and no [SEP], BPE no beginning_of_text().
  std::vector<std::int32_t> encode(std::string_view text, SpecialText special = SpecialText::kPlain) const;
  // Appends to `out`.
  void encode_to(std::string_view text, std::vector<std::int32_t>& out,
                 SpecialText special = SpecialText::kPlain) const;
  // Appends the first `most` ids of encode(text), or some more, without reading far beyond them.
  void encode_beginning_to(std::string_view text, std::size_t most, std::vector<std::int32_t>& out) const;
  // encode(text), by all threads of parallel_for: for texts of megabytes.
  std::vector<std::int32_t> encode_parallel(std::string_view text) const;
  // encode(text) with the bytes of each token. Parts of one character, such as the letters of a Hangul syllable, have
  // the same bytes. UserError: a text of 4 GiB or more.
  std::vector<TokenSpan> encode_with_offsets(std::string_view text, SpecialText special = SpecialText::kPlain) const;

  // BPE: the concatenated bytes of the tokens, which need not be valid UTF-8 (StreamDecoder is for terminals), less the
  // space that SentencePiece puts before a text. WordPiece: the words with spaces between them. UserError: an id
  // outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids) const;
  // The bytes that decode() writes for a token after others: for WordPiece with the space before a word.
  std::string_view bytes_of(std::int32_t id) const;

  std::int64_t vocab_size() const;
  // The id of the token that ends documents, if the vocabulary has it: "<|endoftext|>", or as the files name it.
  std::optional<std::int32_t> end_of_text() const;
  // The id of the token that the files put before every text, if they do ("<|begin_of_text|>", "<s>").
  std::optional<std::int32_t> beginning_of_text() const;
  // The id of the special token with this text.
  std::optional<std::int32_t> special_token(std::string_view text) const;
  // The model. InternalError if kind() is the other one.
  const BpeModel& model() const;
  const WordPieceModel& word_piece() const;
  // 16 hexadecimal digits that identify the ids: a hash of tokens, merges, special tokens, the normalizer and the
  // splitter. Equal for every form of the files; different for a tokenizer that encodes some text otherwise, except by
  // a chance of 2^-64.
  std::string hash() const;

  // Writes files for load() and Hugging Face's tokenizers: tokenizer.json and tokenizer_config.json, with vocab.json
  // and merges.txt or with vocab.txt. Creates the folder; deletes other tokenizer files there. EnvironmentError: it
  // fails.
  void save(const std::filesystem::path& folder) const;

  // Implemented by each kind (tokenizer_implementation.h).
  class Implementation;

 private:
  // Encodes a text between special tokens, or a part of it, cut where the kind allows it.
  void encode_segment(std::string_view text, bool begins_text, std::vector<std::int32_t>& out) const;
  void encode_part(std::string_view text, std::size_t begin, std::size_t end, std::vector<std::int32_t>& out) const;
  void encode_segment_with_offsets(std::string_view text, bool begins_text, std::vector<TokenSpan>& out) const;

  std::shared_ptr<const Implementation> implementation_;
};

}  // namespace teratron

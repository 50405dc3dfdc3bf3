// Byte-level BPE, exactly as GPT-2 does it (Radford et al. 2019, section 2.2; Sennrich et al. 2016): text is split into
// words by GPT-2's pattern, each word's bytes are merged pair by pair in the order of the merge list. Every string of
// bytes has an encoding, valid UTF-8 or not, and decoding it gives the same bytes back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/bpe_model.h"

namespace teratron {

// What to do with the text of a special token, such as "<|endoftext|>", that occurs in the input.
enum class SpecialText {
  kPlain,  // it is text like any other: the rule of GPT-2's evaluations, and safe for text from strangers
  kToken,  // it becomes the special token (the longest one where several match)
};

// Immutable, cheap to copy (copies share the tables), and safe to use from many threads at once.
class Tokenizer {
 public:
  // Reads a folder that holds `tokenizer.json`, or `vocab.json` (or `encoder.json`) with `merges.txt` (or `vocab.bpe`);
  // or one of these files by name. UserError: missing, not what it should be, or not byte-level BPE.
  static Tokenizer load(const std::filesystem::path& folder_or_file);

  explicit Tokenizer(BpeModel model);

  std::vector<std::int32_t> encode(std::string_view text, SpecialText special = SpecialText::kPlain) const;
  // Appends to `out`.
  void encode_to(std::string_view text, std::vector<std::int32_t>& out,
                 SpecialText special = SpecialText::kPlain) const;
  // The same ids as encode(text), found by all threads of parallel_for: for texts of megabytes.
  std::vector<std::int32_t> encode_parallel(std::string_view text) const;

  // The bytes of the tokens in a row; they need not be valid UTF-8 (StreamDecoder is for terminals).
  // UserError: an id outside the vocabulary.
  std::string decode(std::span<const std::int32_t> ids) const;
  std::string_view bytes_of(std::int32_t id) const;

  std::int64_t vocab_size() const;
  // The id of "<|endoftext|>", where the vocabulary has it.
  std::optional<std::int32_t> end_of_text() const;
  // The id of the special token with this text.
  std::optional<std::int32_t> special_token(std::string_view text) const;
  const BpeModel& model() const;
  // 16 hexadecimal digits of what decides the ids: tokens, merges, special tokens and the splitter. The same for every
  // form of the files; another one for a tokenizer that encodes some text otherwise, but for one chance in 2^64.
  std::string hash() const;

  // Writes vocab.json, merges.txt, tokenizer.json and tokenizer_config.json: what load() and Hugging Face's GPT-2
  // tokenizers read. Creates the folder. EnvironmentError where that fails.
  void save(const std::filesystem::path& folder) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace teratron

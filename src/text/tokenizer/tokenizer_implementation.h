// The interface of a kind of tokenizer; Tokenizer does what all kinds share.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>
#include <variant>

#include "tokenizer/bpe/bpe_model.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_piece/word_piece_model.h"

namespace teratron {

class Tokenizer::Implementation {
 public:
  virtual ~Implementation() = default;

  virtual TokenizerKind kind() const = 0;
  // Appends the tokens of plain text.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& out) const = 0;
  // Appends the tokens with their bytes, counted from the beginning of `text`, which is shorter than 4 GiB.
  virtual void encode_with_offsets(std::string_view text, std::vector<TokenSpan>& out) const = 0;
  // An offset at or after `from` where a text can be cut so that its parts can be encoded separately.
  virtual std::size_t next_cut(std::string_view text, std::size_t from) const = 0;
  // Decodes ids of the vocabulary.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  virtual std::string_view bytes_of(std::int32_t id) const = 0;
  // Whether a text, or the part of one after a special token, is encoded as if a space stood before it.
  virtual bool adds_space_to(std::string_view, bool /*begins_text*/) const { return false; }
  virtual std::string_view end_of_text() const { return kEndOfText; }
  virtual std::string_view beginning_of_text() const { return {}; }
  // The special token that takes the white space before it, as RoBERTa's <mask> does.
  virtual std::optional<std::int32_t> takes_space_before() const { return std::nullopt; }
  virtual std::int64_t vocab_size() const = 0;
  virtual const SpecialTokens& special() const = 0;
  virtual std::string hash() const = 0;
  virtual void save(const std::filesystem::path& folder) const = 0;

  // Null where kind() is the other one.
  virtual const BpeModel* byte_pair() const { return nullptr; }
  virtual const WordPieceModel* word_piece() const { return nullptr; }
};

std::shared_ptr<const Tokenizer::Implementation> make_byte_pair_tokenizer(BpeModel model);
std::shared_ptr<const Tokenizer::Implementation> make_word_piece_tokenizer(WordPieceModel model);

// A pool of encoders. A call takes one and returns it, so caches stay warm from call to call, and there are as many as
// calls that ran concurrently.
template <class Encoder>
class EncoderPool {
 public:
  template <class Table>
  std::unique_ptr<Encoder> take(const Table& table) {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Encoder>(table);
    std::unique_ptr<Encoder> encoder = std::move(idle_.back());
    idle_.pop_back();
    return encoder;
  }
  void give_back(std::unique_ptr<Encoder> encoder) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(encoder));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Encoder>> idle_;
};

// Finds and reads the files in a folder, or beside the one file named, as Tokenizer::load says.
std::variant<BpeModel, WordPieceModel> read_tokenizer_model(const std::filesystem::path& folder_or_file);

}  // namespace teratron

// What a kind of tokenizer does itself; Tokenizer does the rest for all of them.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "tokenizer/special_tokens.h"
#include "tokenizer/tokenizer.h"

namespace teratron {

class Tokenizer::Implementation {
 public:
  virtual ~Implementation() = default;

  virtual TokenizerKind kind() const = 0;
  // The tokens of plain text, appended.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& out) const = 0;
  // The same with their places, counted from the beginning of `text`, which is less than 4 GiB.
  virtual void encode_with_offsets(std::string_view text, std::vector<TokenSpan>& out) const = 0;
  // A place at or after `from` where a text can be cut for its parts to be encoded apart.
  virtual std::size_t next_cut(std::string_view text, std::size_t from) const = 0;
  // Of ids of the vocabulary.
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  virtual std::string_view bytes_of(std::int32_t id) const = 0;
  // Whether a text that begins otherwise is encoded as if it began with a space.
  virtual bool adds_prefix_space() const { return false; }
  virtual std::string_view end_of_text() const { return kEndOfText; }
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

// Encoders at rest. A call takes one and gives it back, so the caches stay warm from call to call, and there are as
// many as calls that ran at the same time.
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

}  // namespace teratron

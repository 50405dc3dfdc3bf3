#include "tokenizer/word_piece/word_piece_encoder.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/utf8.h"
#include "tokenizer/bpe/splitter.h"
#include "tokenizer/word_piece/bert_characters.h"

namespace teratron {
namespace {

// Kinds of bytes, by their effect on words.
enum class Byte : std::uint8_t {
  kSpace,
  kPunctuation,  // a word by itself
  kControl,      // dropped, so the characters on both sides may be one word
  kAlphanumeric,
  kOther,  // part of a character that is not ASCII
};

constexpr std::array<Byte, 256> kByteKinds = [] {
  std::array<Byte, 256> kinds{};
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    const bool is_space = byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
    kinds[static_cast<std::size_t>(byte)] = byte >= 0x80                                ? Byte::kOther
                                            : is_space                                  ? Byte::kSpace
                                            : byte < ' ' || byte == 0x7F                ? Byte::kControl
                                            : is_letter || (byte >= '0' && byte <= '9') ? Byte::kAlphanumeric
                                                                                        : Byte::kPunctuation;
  }
  return kinds;
}();

Byte kind_of(char byte) { return kByteKinds[static_cast<unsigned char>(byte)]; }

// The end of the letters and numbers that begin at `at`.
std::size_t alphanumeric_end(std::string_view text, std::size_t at) {
  while (at + 8 <= text.size()) {
    const std::size_t letters = detail::leading_letters(text.data() + at);
    at += letters;
    if (letters < 8) break;
  }
  while (at < text.size() && kind_of(text[at]) == Byte::kAlphanumeric) ++at;
  return at;
}

// The first offset from `at` on where a word surely ends.
std::size_t sure_end(std::string_view text, std::size_t at) {
  while (at < text.size() && kind_of(text[at]) != Byte::kSpace && kind_of(text[at]) != Byte::kPunctuation) ++at;
  return at;
}

// Collects ids, and appends them in blocks: a vector would check its capacity for every word.
class IdSink {
 public:
  explicit IdSink(std::vector<std::int32_t>& out) : out_(out) {}
  ~IdSink() { flush(); }
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;

  void word(std::span<const std::int32_t> ids) {
    if (count_ + ids.size() > gathered_.size()) {
      flush();
      if (ids.size() > gathered_.size()) {
        out_.insert(out_.end(), ids.begin(), ids.end());
        return;
      }
    }
    std::memcpy(&gathered_[count_], ids.data(), ids.size_bytes());
    count_ += ids.size();
  }
  void ascii_word(std::span<const std::int32_t> ids, std::size_t /*begin*/, std::size_t /*length*/) { word(ids); }
  void normalized_word(std::span<const std::int32_t> ids, std::span<const NormalizedCharacter> /*characters*/,
                       std::size_t /*begin*/) {
    word(ids);
  }

 private:
  void flush() {
    out_.insert(out_.end(), gathered_.begin(), gathered_.begin() + static_cast<std::ptrdiff_t>(count_));
    count_ = 0;
  }

  std::vector<std::int32_t>& out_;
  std::array<std::int32_t, 1024> gathered_;
  std::size_t count_ = 0;
};

// Collects ids with their bytes in the text.
class SpanSink {
 public:
  SpanSink(const WordPieceModel& model, std::vector<TokenSpan>& out) : model_(model), out_(out) {}

  // Adds a word that was looked up as written in the text, except for case.
  void ascii_word(std::span<const std::int32_t> ids, std::size_t begin, std::size_t length) {
    each_piece(ids, length, [&](std::int32_t id, std::size_t from, std::size_t to) {
      out_.push_back({id, static_cast<std::uint32_t>(begin + from), static_cast<std::uint32_t>(begin + to)});
    });
  }
  // Adds a word of these characters, whose bytes count from `begin` on.
  void normalized_word(std::span<const std::int32_t> ids, std::span<const NormalizedCharacter> characters,
                       std::size_t begin) {
    std::size_t length = 0, at = 0, bytes = 0;
    for (const NormalizedCharacter& character : characters) length += utf8_length(character.code);
    // Moves to the character that ends at a byte of the word.
    const auto go_to = [&](std::size_t byte) {
      while (bytes < byte) bytes += utf8_length(characters[at++].code);
      return at;
    };
    each_piece(ids, length, [&](std::int32_t id, std::size_t from, std::size_t to) {
      const std::uint32_t first = characters[go_to(from)].begin, last = characters[go_to(to) - 1].end;
      out_.push_back({id, static_cast<std::uint32_t>(begin + first), static_cast<std::uint32_t>(begin + last)});
    });
  }

 private:
  // Calls back with each id of a word of `length` bytes and its begin and end.
  template <class Callback>
  void each_piece(std::span<const std::int32_t> ids, std::size_t length, const Callback& callback) const {
    if (ids.size() == 1) return callback(ids[0], std::size_t{0}, length);  // [UNK] among them
    std::size_t from = 0;
    for (const std::int32_t id : ids) {
      const std::size_t size = model_.tokens[static_cast<std::size_t>(id)].size();
      const std::size_t to = from + (from == 0 ? size : size - model_.prefix.size());
      callback(id, from, to);
      from = to;
    }
  }

  const WordPieceModel& model_;
  std::vector<TokenSpan>& out_;
};

}  // namespace

std::size_t next_cut_between_words(std::string_view text, std::size_t from) {
  while (from < text.size() && kind_of(text[from]) != Byte::kSpace) ++from;
  return from;
}

void WordPieceEncoder::encode(std::string_view text, std::vector<std::int32_t>& out) {
  IdSink sink(out);
  encode_into(text, sink);
}

void WordPieceEncoder::encode_with_offsets(std::string_view text, std::vector<TokenSpan>& out) {
  SpanSink sink(table_.model(), out);
  encode_into(text, sink);
}

template <class Sink>
void WordPieceEncoder::encode_into(std::string_view text, Sink& sink) {
  for (std::size_t at = 0; at < text.size();) {
    const Byte kind = kind_of(text[at]);
    if (kind == Byte::kSpace || kind == Byte::kControl) {
      ++at;
      continue;
    }
    if (kind == Byte::kPunctuation) {
      const std::int32_t id = table_.token_of(static_cast<unsigned char>(text[at]));
      sink.ascii_word({&id, 1}, at, 1);
      ++at;
      continue;
    }
    const std::size_t ascii = alphanumeric_end(text, at);
    const std::size_t end = sure_end(text, ascii);
    if (end == ascii) {
      sink.ascii_word(tokens_of_ascii(text.substr(at), end - at), at, end - at);
    } else {
      encode_normalized(text, at, end, sink);
    }
    at = end;
  }
}

template <class Sink>
void WordPieceEncoder::encode_normalized(std::string_view text, std::size_t begin, std::size_t end, Sink& sink) {
  const std::span<const NormalizedCharacter> characters = normalizer_.normalize(text.substr(begin, end - begin));
  std::size_t first = 0;
  word_.clear();
  const auto finish = [&](std::size_t last) {
    if (last > first) sink.normalized_word(tokens_of(word_), characters.subspan(first, last - first), begin);
    word_.clear();
  };
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const char32_t code = characters[i].code;
    const bool is_space = code == ' ';
    if (is_space || bert::is_punctuation(code)) {
      finish(i);
      first = i + (is_space ? 1 : 0);
      if (!is_space) {
        append_utf8(code, word_);
        finish(i + 1);
        first = i + 1;
      }
    } else {
      append_utf8(code, word_);
    }
  }
  finish(characters.size());
}

std::span<const std::int32_t> WordPieceEncoder::tokens_of(std::string_view word) {
  if (word.size() > WordCache::kLongestWord) return find_tokens(word);
  const WordCache::Key key = WordCache::key_of(word, word.size());
  WordCache::Entry& entry = cache_.entry(key);
  if (entry.key != key) {
    const std::span<const std::int32_t> ids = find_tokens(word);
    if (ids.size() > WordCache::kMostTokens) return ids;
    entry.key = key;
    std::ranges::copy(ids, entry.tokens.begin());
    entry.count = static_cast<std::int32_t>(ids.size());
  }
  return {entry.tokens.data(), static_cast<std::size_t>(entry.count)};
}

std::span<const std::int32_t> WordPieceEncoder::tokens_of_ascii(std::string_view text, std::size_t length) {
  if (length <= WordCache::kLongestWord) {
    WordCache::Key key = WordCache::key_of(text, length);
    if (table_.model().lower_case) {
      // Letters have bit 6 set and numbers have not; with bit 5 a letter is in lower case.
      for (std::uint64_t& eight : key.words) eight |= (eight & 0x4040404040404040) >> 1;
    }
    const WordCache::Entry& entry = cache_.entry(key);
    if (entry.key == key) return {entry.tokens.data(), static_cast<std::size_t>(entry.count)};
  }
  word_.assign(text.substr(0, length));
  if (table_.model().lower_case) {
    for (char& letter : word_) letter = static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter | 0x20 : letter);
  }
  return tokens_of(word_);
}

std::span<const std::int32_t> WordPieceEncoder::find_tokens(std::string_view word) {
  const WordPieceModel& model = table_.model();
  const auto most = static_cast<std::size_t>(model.max_word_characters);
  found_.clear();
  std::size_t at = 0;
  if (word.size() <= most || count_characters(word) <= most) {
    while (at < word.size()) {
      const WordPieceTable::Match match = table_.longest(word.substr(at), at > 0);
      if (match.length == 0) break;
      found_.push_back(match.id);
      at += match.length;
    }
  }
  if (at < word.size()) found_.assign(1, model.unknown);
  return found_;
}

}  // namespace teratron

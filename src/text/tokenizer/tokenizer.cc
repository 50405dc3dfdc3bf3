#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/file.h"
#include "base/host/threads.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer_implementation.h"
#include "tokenizer/unicode.h"

namespace teratron {
namespace {

std::string_view without_space_at_end(std::string_view text) {
  while (!text.empty()) {
    const std::size_t begin = last_character(text);
    const Utf8Step last = decode_utf8(text.substr(begin));
    if (last.status != Utf8Status::kValid || class_of(last.code) != CharClass::kSpace) break;
    text = text.substr(0, begin);
  }
  return text;
}

// Calls back with each plain part of `text`, and with each special token between them and its offset.
template <class Plain, class Special>
void split_at_special_tokens(std::string_view text, const Tokenizer::Implementation& tokenizer, const Plain& plain,
                             const Special& token) {
  std::size_t at = 0;
  while (const auto match = tokenizer.special().find(text.substr(at))) {
    const std::string_view part = text.substr(at, match->position);
    plain(match->id == tokenizer.takes_space_before() ? without_space_at_end(part) : part, at);
    token(*match, at + match->position);
    at += match->position + match->length;
  }
  plain(text.substr(at), at);
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& folder_or_file) {
  return std::visit([](auto model) { return Tokenizer(std::move(model)); }, read_tokenizer_model(folder_or_file));
}

Tokenizer::Tokenizer(BpeModel model) {
  validate(model, "tokenizer");
  implementation_ = make_byte_pair_tokenizer(std::move(model));
}

Tokenizer::Tokenizer(WordPieceModel model) {
  validate(model, "tokenizer");
  implementation_ = make_word_piece_tokenizer(std::move(model));
}

TokenizerKind Tokenizer::kind() const { return implementation_->kind(); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialText special) const {
  std::vector<std::int32_t> ids;
  encode_to(text, ids, special);
  return ids;
}

void Tokenizer::encode_to(std::string_view text, std::vector<std::int32_t>& out, SpecialText special) const {
  if (special == SpecialText::kPlain) return encode_segment(text, true, out);
  split_at_special_tokens(
      text, *implementation_, [&](std::string_view part, std::size_t begin) { encode_segment(part, begin == 0, out); },
      [&](const SpecialTokens::Match& match, std::size_t) { out.push_back(match.id); });
}

void Tokenizer::encode_segment(std::string_view text, bool begins_text, std::vector<std::int32_t>& out) const {
  if (text.empty() || !implementation_->adds_space_to(text, begins_text)) return implementation_->encode(text, out);
  // Encodes a copy of the first words only.
  const std::size_t cut = implementation_->next_cut(text, 1);
  implementation_->encode(" " + std::string(text.substr(0, cut)), out);
  implementation_->encode(text.substr(cut), out);
}

void Tokenizer::encode_part(std::string_view text, std::size_t begin, std::size_t end,
                            std::vector<std::int32_t>& out) const {
  const std::string_view part = text.substr(begin, end - begin);
  begin == 0 ? encode_segment(part, true, out) : implementation_->encode(part, out);
}

void Tokenizer::encode_segment_with_offsets(std::string_view text, bool begins_text,
                                            std::vector<TokenSpan>& out) const {
  if (text.empty() || !implementation_->adds_space_to(text, begins_text)) {
    return implementation_->encode_with_offsets(text, out);
  }
  const std::size_t before = out.size();
  implementation_->encode_with_offsets(" " + std::string(text), out);
  for (TokenSpan& span : std::span(out).subspan(before)) {  // the space comes from no byte
    span.begin -= span.begin > 0 ? 1 : 0;
    --span.end;
  }
}

void Tokenizer::encode_beginning_to(std::string_view text, std::size_t most, std::vector<std::int32_t>& out) const {
  constexpr std::size_t kLeast = 512, kMost = std::size_t{1} << 14;
  constexpr std::size_t kBytesEach = 8;  // so most texts are read in one part
  const std::size_t before = out.size();
  for (std::size_t begin = 0; begin < text.size() && out.size() - before < most;) {
    const std::size_t missing = std::min(most - (out.size() - before), kMost);
    const std::size_t part = std::clamp(kBytesEach * missing, kLeast, kMost);
    const std::size_t end = implementation_->next_cut(text, std::min(begin + part, text.size()));
    encode_part(text, begin, end, out);
    begin = end;
  }
}

std::vector<TokenSpan> Tokenizer::encode_with_offsets(std::string_view text, SpecialText special) const {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw_user_error("a text of {} bytes has offsets beyond 32 bits; cut it at a space", text.size());
  }
  std::vector<TokenSpan> spans;
  if (special == SpecialText::kPlain) {
    encode_segment_with_offsets(text, true, spans);
    return spans;
  }
  const auto plain = [&](std::string_view part, std::size_t begin) {
    const std::size_t before = spans.size();
    encode_segment_with_offsets(part, begin == 0, spans);
    for (TokenSpan& span : std::span(spans).subspan(before)) {
      span.begin += static_cast<std::uint32_t>(begin);
      span.end += static_cast<std::uint32_t>(begin);
    }
  };
  split_at_special_tokens(text, *implementation_, plain, [&](const SpecialTokens::Match& match, std::size_t begin) {
    spans.push_back({match.id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(begin + match.length)});
  });
  return spans;
}

std::vector<std::int32_t> Tokenizer::encode_parallel(std::string_view text) const {
  constexpr std::size_t kPart = std::size_t{1} << 18;
  std::vector<std::pair<std::size_t, std::size_t>> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = implementation_->next_cut(text, std::min(begin + kPart, text.size()));
    parts.emplace_back(begin, end);
    begin = end;
  }
  std::vector<std::vector<std::int32_t>> ids(parts.size());
  parallel_for(std::ssize(parts), 1, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      encode_part(text, parts[i].first, parts[i].second, ids[i]);
    }
  });
  std::size_t total = 0;
  for (const auto& part : ids) total += part.size();
  std::vector<std::int32_t> out;
  out.reserve(total);
  for (const auto& part : ids) out.insert(out.end(), part.begin(), part.end());
  return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids) const {
  const std::int64_t tokens = vocab_size();
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= tokens) bytes_of(id);  // the error
  }
  return implementation_->decode(ids);
}

std::string_view Tokenizer::bytes_of(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) {
    throw_user_error("token id {} is outside the vocabulary of {} tokens; were the ids made with another tokenizer?",
                     id, vocab_size());
  }
  return implementation_->bytes_of(id);
}

std::int64_t Tokenizer::vocab_size() const { return implementation_->vocab_size(); }

std::optional<std::int32_t> Tokenizer::end_of_text() const { return special_token(implementation_->end_of_text()); }

std::optional<std::int32_t> Tokenizer::beginning_of_text() const {
  return special_token(implementation_->beginning_of_text());
}

std::optional<std::int32_t> Tokenizer::special_token(std::string_view text) const {
  return implementation_->special().id_of(text);
}

const BpeModel& Tokenizer::model() const {
  check(implementation_->byte_pair() != nullptr, "the tokenizer is BPE");
  return *implementation_->byte_pair();
}

const WordPieceModel& Tokenizer::word_piece() const {
  check(implementation_->word_piece() != nullptr, "the tokenizer is WordPiece");
  return *implementation_->word_piece();
}

std::string Tokenizer::hash() const { return implementation_->hash(); }

void Tokenizer::save(const std::filesystem::path& folder) const {
  make_folders(folder);
  implementation_->save(folder);
}

}  // namespace teratron

#include "tokenizer/bpe/bpe_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizer/bpe/splitter.h"

namespace teratron {

MergeTable::MergeTable(const BpeModel& model)
    : byte_tokens_(tokens_of_bytes(model)), splits_characters_(model.pipeline.is_sentence_piece()) {
  std::vector<std::pair<char32_t, std::int32_t>> characters;
  for (std::size_t id = 0; splits_characters_ && id < model.tokens.size(); ++id) {
    const std::string& token = model.tokens[id];
    const auto number = static_cast<std::int32_t>(id);
    const Utf8Step step = decode_utf8(token);
    if (step.status != Utf8Status::kValid || step.length != token.size()) continue;
    if (byte_tokens_[static_cast<unsigned char>(token[0])] != number) characters.emplace_back(step.code, number);
  }
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * (model.merges.size() + characters.size()), 2));
  slots_.assign(slots, Slot{kEmpty, kNoMerge});
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  for (std::size_t rank = 0; rank < model.merges.size(); ++rank) {
    const BpeMerge& merge = model.merges[rank];
    insert(pair_key(merge.left, merge.right), std::uint64_t{rank} << 32 | static_cast<std::uint32_t>(merge.merged));
  }
  for (const auto& [code, id] : characters) {
    insert(pair_key(kCharacter, static_cast<std::int32_t>(code)), static_cast<std::uint32_t>(id));
  }
}

void MergeTable::insert(std::uint64_t key, RankedMerge merge) {
  std::size_t at = first_slot(key);
  while (slots_[at].key != kEmpty) at = (at + 1) & mask_;
  slots_[at] = {key, merge};
}

std::size_t MergeTable::split(std::string_view word, std::int32_t* tokens) const {
  if (splits_characters_) return split_characters(word, tokens);
  for (std::size_t i = 0; i < word.size(); ++i) tokens[i] = byte_token(word[i]);
  return word.size();
}

std::size_t MergeTable::split_characters(std::string_view word, std::int32_t* tokens) const {
  std::size_t count = 0;
  while (!word.empty()) {
    const Utf8Step step = decode_utf8(word);
    const RankedMerge known =
        step.status == Utf8Status::kValid ? find(kCharacter, static_cast<std::int32_t>(step.code)) : kNoMerge;
    if (known != kNoMerge) {
      tokens[count++] = merged_token(known);
    } else {
      for (const char byte : word.substr(0, step.length)) tokens[count++] = byte_token(byte);
    }
    word.remove_prefix(step.length);
  }
  return count;
}

namespace {

// Up to this length, searching all pairs for the lowest rank is faster than a queue.
constexpr std::size_t kShortWord = 64;
constexpr std::size_t kLongestWord = std::size_t{1} << 31;
constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

}  // namespace

void WordMerger::append(std::string_view word, std::vector<std::int32_t>& out) {
  if (word.size() <= kShortWord) return append_short(word, out);
  if (word.size() >= kLongestWord) {
    throw_user_error(
        "cannot tokenize a word of {} bytes (text without a change between letters, digits, symbols and "
        "white space); 2 GiB is the most",
        word.size());
  }
  append_long(word, out);
}

void WordMerger::append_short(std::string_view word, std::vector<std::int32_t>& out) const {
  std::array<std::int32_t, kShortWord> tokens;
  std::array<RankedMerge, kShortWord> merges;  // [i]: of tokens i and i + 1
  std::size_t count = table_->split(word, tokens.data());
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = table_->find(tokens[i], tokens[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) best = merges[i] < merges[best] ? i : best;
    if (merges[best] == kNoMerge) break;
    tokens[best] = MergeTable::merged_token(merges[best]);
    --count;
    for (std::size_t i = best + 1; i < count; ++i) tokens[i] = tokens[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best > 0) merges[best - 1] = table_->find(tokens[best - 1], tokens[best]);
    if (best + 1 < count) merges[best] = table_->find(tokens[best], tokens[best + 1]);
  }
  out.insert(out.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
}

// Looks up the merge of token `at` with its next one. It replaces a queued merge, whose rank then shows that it is
// stale.
void WordMerger::rank(std::uint32_t at) {
  Node& node = nodes_[at];
  node.merge = node.next == kNowhere ? kNoMerge : table_->find(node.token, nodes_[node.next].token);
  if (node.merge != kNoMerge) queue_.push_back((node.merge >> 32 << 32) | at);
}

void WordMerger::append_long(std::string_view word, std::vector<std::int32_t>& out) {
  tokens_.resize(word.size());
  const auto count = static_cast<std::uint32_t>(table_->split(word, tokens_.data()));
  nodes_.resize(count);
  queue_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    nodes_[i] = {tokens_[i], i == 0 ? kNowhere : i - 1, i + 1 == count ? kNowhere : i + 1, kNoMerge};
  }
  for (std::uint32_t i = 0; i < count; ++i) rank(i);
  std::ranges::make_heap(queue_, std::greater{});
  const auto rank_and_queue = [&](std::uint32_t at) {
    const std::size_t before = queue_.size();
    rank(at);
    if (queue_.size() > before) std::ranges::push_heap(queue_, std::greater{});
  };
  while (!queue_.empty()) {
    std::ranges::pop_heap(queue_, std::greater{});
    const std::uint64_t top = queue_.back();
    queue_.pop_back();
    const auto at = static_cast<std::uint32_t>(top);
    Node& node = nodes_[at];
    if (node.merge == kNoMerge || node.merge >> 32 != top >> 32) continue;
    node.token = MergeTable::merged_token(node.merge);
    nodes_[node.next].merge = kNoMerge;
    node.next = nodes_[node.next].next;
    if (node.next != kNowhere) nodes_[node.next].previous = at;
    rank_and_queue(at);
    if (node.previous != kNowhere) rank_and_queue(node.previous);
  }
  for (std::uint32_t at = 0; at != kNowhere; at = nodes_[at].next) out.push_back(nodes_[at].token);
}

WordJoints::WordJoints(const BpeModel& model) {
  if (!model.pipeline.is_sentence_piece()) return;
  for (auto& joints : joints_) joints[2] = ~std::uint64_t{0};  // bytes 0x80 to 0xBF continue a character
  for (const BpeMerge& merge : model.merges) {
    const auto left = static_cast<unsigned char>(model.tokens[static_cast<std::size_t>(merge.left)].back());
    const auto right = static_cast<unsigned char>(model.tokens[static_cast<std::size_t>(merge.right)].front());
    if (model.pipeline.splitter == BpeSplitter::kMetaspace && right == ' ') continue;
    joints_[left][right / 64] |= std::uint64_t{1} << (right % 64);
  }
}

std::size_t WordJoints::next_safe_cut(std::string_view text, std::size_t from) const {
  for (std::size_t i = from; i < text.size(); ++i) {
    if (i == 0 || text[i] != ' ' || is_joint(text[i - 1], ' ')) continue;
    if (text[i - 1] != ' ' && static_cast<unsigned char>(text[i - 1]) < 0x80) return i;
  }
  return text.size();
}

namespace {

// A type for each splitter, so that it is inlined.
template <BpeSplitter kSplitter>
struct FirstWord {
  std::size_t operator()(std::string_view text) const { return first_word_length<kSplitter>(text); }
};

}  // namespace

BpeTables::BpeTables(const BpeModel& model) : splitter(model.pipeline.splitter), merges(model), joints(model) {
  if (!model.pipeline.ignore_merges) return;
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    const auto number = static_cast<std::int32_t>(id);
    if (std::ranges::binary_search(model.special, number) || std::ranges::binary_search(model.found, number)) continue;
    whole_words.emplace(model.tokens[id], number);
  }
}

void BpeEncoder::encode(std::string_view text, std::vector<std::int32_t>& out) {
  switch (tables_->splitter) {
    case BpeSplitter::kGpt2: return encode_words(text, FirstWord<BpeSplitter::kGpt2>{}, out);
    case BpeSplitter::kLlama3: return encode_words(text, FirstWord<BpeSplitter::kLlama3>{}, out);
    case BpeSplitter::kQwen2: return encode_words(text, FirstWord<BpeSplitter::kQwen2>{}, out);
    case BpeSplitter::kDigits: return encode_words(text, FirstWord<BpeSplitter::kDigits>{}, out);
    case BpeSplitter::kSentencePiece:
    case BpeSplitter::kMetaspace: {
      const auto length = [&](std::string_view rest) { return tables_->joints.first_word_length(rest); };
      return encode_words(text, length, out);
    }
  }
}

template <class FirstWordLength>
void BpeEncoder::encode_words(std::string_view text, const FirstWordLength& first_word_length,
                              std::vector<std::int32_t>& out) {
  // Processes words in groups: first locates and prefetches each one's cache entry, then reads them, so that waits for
  // memory overlap.
  struct Pending {
    WordCache::Key key;
    const WordCache::Entry* entry;  // null: too long to be cached
    std::string_view word;
  };
  constexpr std::size_t kGroup = 64;
  std::array<Pending, kGroup> pending;
  std::array<std::int32_t, kGroup * WordCache::kMostTokens> gathered;  // a vector would check its room for every word
  while (!text.empty()) {
    std::size_t words = 0;
    for (; words < pending.size() && !text.empty(); ++words) {
      const std::size_t length = first_word_length(text);
      Pending& next = pending[words];
      next.word = text.substr(0, length);
      next.entry = nullptr;
      if (length <= WordCache::kLongestWord) {
        next.key = WordCache::key_of(text, length);
        next.entry = &cache_.entry(next.key);
        __builtin_prefetch(next.entry);
      }
      text.remove_prefix(length);
    }
    std::size_t count = 0;
    const auto flush = [&] {
      out.insert(out.end(), gathered.begin(), gathered.begin() + static_cast<std::ptrdiff_t>(count));
      count = 0;
    };
    for (const Pending& next : std::span(pending).first(words)) {
      if (next.entry != nullptr && next.entry->key == next.key) {
        std::memcpy(&gathered[count], next.entry->tokens.data(),
                    sizeof next.entry->tokens);  // all of them: no call, no loop
        count += static_cast<std::size_t>(next.entry->count);
      } else {
        flush();
        append_word(next.word, out);
      }
    }
    flush();
  }
}

void BpeEncoder::append_word(std::string_view word, std::vector<std::int32_t>& out) {
  const std::size_t before = out.size();
  const auto whole = tables_->whole_words.find(word);
  if (whole != tables_->whole_words.end()) {
    out.push_back(whole->second);
  } else {
    merger_.append(word, out);
  }
  const std::size_t count = out.size() - before;
  if (word.size() > WordCache::kLongestWord || count > WordCache::kMostTokens) return;
  const WordCache::Key key = WordCache::key_of(word, word.size());
  WordCache::Entry& entry = cache_.entry(key);
  entry.key = key;
  std::copy_n(out.end() - static_cast<std::ptrdiff_t>(count), count, entry.tokens.begin());
  entry.count = static_cast<std::int32_t>(count);
}

}  // namespace teratron

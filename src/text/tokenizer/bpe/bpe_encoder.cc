#include "tokenizer/bpe/bpe_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <span>

#include "base/error.h"
#include "tokenizer/bpe/splitter.h"

namespace teratron {

MergeTable::MergeTable(const BpeModel& model) {
  const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * model.merges.size(), 2));
  slots_.assign(slots, Slot{kEmpty, kNoMerge});
  mask_ = slots - 1;
  shift_ = 64 - std::countr_zero(slots);
  for (std::size_t rank = 0; rank < model.merges.size(); ++rank) {
    const BpeMerge& merge = model.merges[rank];
    const std::uint64_t key = key_of(merge.left, merge.right);
    std::size_t at = first_slot(key);
    while (slots_[at].key != kEmpty) at = (at + 1) & mask_;
    slots_[at] = {key, std::uint64_t{rank} << 32 | static_cast<std::uint32_t>(merge.merged)};
  }
  for (std::size_t id = 0; id < model.tokens.size(); ++id) {
    const std::string& token = model.tokens[id];
    if (token.size() != 1 || std::ranges::binary_search(model.special, static_cast<std::int32_t>(id))) continue;
    byte_tokens_[static_cast<unsigned char>(token[0])] = static_cast<std::int32_t>(id);
  }
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
  std::size_t count = word.size();
  for (std::size_t i = 0; i < count; ++i) tokens[i] = table_->byte_token(word[i]);
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
  const auto count = static_cast<std::uint32_t>(word.size());
  nodes_.resize(count);
  queue_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    nodes_[i] = {table_->byte_token(word[i]), i == 0 ? kNowhere : i - 1, i + 1 == count ? kNowhere : i + 1, kNoMerge};
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

void BpeEncoder::encode(std::string_view text, std::vector<std::int32_t>& out) {
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
  merger_.append(word, out);
  const std::size_t count = out.size() - before;
  if (word.size() > WordCache::kLongestWord || count > WordCache::kMostTokens) return;
  const WordCache::Key key = WordCache::key_of(word, word.size());
  WordCache::Entry& entry = cache_.entry(key);
  entry.key = key;
  std::copy_n(out.end() - static_cast<std::ptrdiff_t>(count), count, entry.tokens.begin());
  entry.count = static_cast<std::int32_t>(count);
}

}  // namespace teratron

#include "tokenizer/bpe/word_merger.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/error.h"

namespace teratron {
namespace {

// Up to here looking through all pairs for the lowest rank is faster than keeping a queue.
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

// Looks up the merge of the token at `at` with its next one. A queued merge that this replaces goes stale: it is told
// by its rank when it comes up.
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

}  // namespace teratron

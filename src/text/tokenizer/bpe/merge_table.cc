#include "tokenizer/bpe/merge_table.h"

#include <algorithm>
#include <bit>

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

}  // namespace teratron

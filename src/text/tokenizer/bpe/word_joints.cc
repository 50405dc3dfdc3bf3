#include "tokenizer/bpe/word_joints.h"

namespace teratron {

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

}  // namespace teratron

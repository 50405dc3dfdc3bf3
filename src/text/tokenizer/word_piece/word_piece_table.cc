#include "tokenizer/word_piece/word_piece_table.h"

#include <algorithm>
#include <bit>

namespace teratron {

WordPieceTable::WordPieceTable(const WordPieceModel& model) : model_(&model) {
  // At most as many edges as bytes of all tokens, twice for tokens that both begin and continue words.
  std::size_t bytes = 0;
  for (const std::string& token : model.tokens) bytes += 2 * token.size();
  const int bits = std::max(4, static_cast<int>(std::bit_width(2 * bytes)));
  edges_.resize(std::size_t{1} << bits);
  shift_ = 64 - bits;
  id_of_node_ = {-1, -1};
  for (std::size_t i = 0; i < model.tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const std::string_view token = model.tokens[i];
    insert(kBegins, token, id);
    if (model.continues_word(id) && token.size() > model.prefix.size()) {
      insert(kContinues, token.substr(model.prefix.size()), id);
    }
  }
  for (std::size_t byte = 0; byte < ascii_.size(); ++byte) {
    const auto character = static_cast<char>(byte);
    const Match match = longest({&character, 1}, false);
    ascii_[byte] = match.length == 0 ? model.unknown : match.id;
  }
}

WordPieceTable::Match WordPieceTable::longest(std::string_view rest, bool continues) const {
  Match match;
  std::int32_t node = continues ? kContinues : kBegins;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    node = child_of(node, rest[i]);
    if (node < 0) break;
    const std::int32_t id = id_of_node_[static_cast<std::size_t>(node)];
    if (id >= 0) match = {id, i + 1};
  }
  return match;
}

std::size_t WordPieceTable::slot_of(std::uint64_t key) const {
  std::size_t slot = (key * 0x9E3779B97F4A7C15) >> shift_;
  while (edges_[slot].key != key && edges_[slot].key != kEmpty) slot = (slot + 1) & (edges_.size() - 1);
  return slot;
}

std::int32_t WordPieceTable::child_of(std::int32_t node, char byte) const {
  const std::uint64_t key = static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
  const Edge& edge = edges_[slot_of(key)];
  return edge.key == key ? edge.child : -1;
}

void WordPieceTable::insert(std::int32_t root, std::string_view text, std::int32_t id) {
  std::int32_t node = root;
  for (const char byte : text) {
    const std::uint64_t key = static_cast<std::uint64_t>(node) << 8 | static_cast<unsigned char>(byte);
    Edge& edge = edges_[slot_of(key)];
    if (edge.key == kEmpty) {
      edge = {key, static_cast<std::int32_t>(id_of_node_.size())};
      id_of_node_.push_back(-1);
    }
    node = edge.child;
  }
  id_of_node_[static_cast<std::size_t>(node)] = id;
}

}  // namespace teratron

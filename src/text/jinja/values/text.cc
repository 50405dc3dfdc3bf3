#include "jinja/values/text.h"

#include <utility>

#include "base/utf8.h"

namespace teratron::jinja {

Text::Text(std::string its_bytes, bool is_safe)
    : bytes(std::move(its_bytes)), safe(is_safe), characters(count_characters(bytes)) {
  if (characters == bytes.size()) return;
  std::size_t count = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (continues_character(bytes[at])) continue;
    if (count++ % kStride == 0) offsets_.push_back(static_cast<std::uint32_t>(at));
  }
}

std::size_t Text::offset_of(std::size_t index) const {
  if (offsets_.empty()) return index;
  if (index == characters) return bytes.size();
  std::size_t at = offsets_[index / kStride];
  for (std::size_t left = index % kStride; left > 0; --left) {
    do {
      ++at;
    } while (continues_character(bytes[at]));
  }
  return at;
}

std::string_view Text::part(std::size_t begin, std::size_t end) const {
  const std::size_t first = offset_of(begin);
  return std::string_view(bytes).substr(first, offset_of(end) - first);
}

}  // namespace teratron::jinja

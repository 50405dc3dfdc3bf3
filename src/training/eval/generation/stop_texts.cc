#include "eval/generation/stop_texts.h"

#include <algorithm>
#include <utility>

namespace teratron {

std::string StopTexts::push(std::string_view bytes) {
  for (const char byte : bytes) {
    if (stopped_) return "";
    held_ += byte;
    std::size_t longest = 0;
    for (const std::string& text : texts_) {
      if (held_.ends_with(text)) longest = std::max(longest, text.size());
    }
    if (longest == 0) continue;
    stopped_ = true;
    held_.erase(held_.size() - longest);
    return std::exchange(held_, {});
  }
  const std::size_t kept = beginning_of_one();
  std::string out = held_.substr(0, held_.size() - kept);
  held_.erase(0, out.size());
  return out;
}

std::string StopTexts::finish() { return std::exchange(held_, {}); }

// Largest number of last bytes that begin a stop text.
std::size_t StopTexts::beginning_of_one() const {
  std::size_t most = 0;
  for (const std::string& text : texts_) {
    for (std::size_t count = std::min(text.size() - 1, held_.size()); count > most; --count) {
      if (std::string_view(held_).substr(held_.size() - count) == std::string_view(text).substr(0, count)) most = count;
    }
  }
  return most;
}

}  // namespace teratron

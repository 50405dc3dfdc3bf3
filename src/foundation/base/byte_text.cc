#include "base/byte_text.h"

#include <fmt/format.h>

#include <charconv>

#include "base/utf8.h"

namespace teratron {
namespace {

constexpr std::string_view kMark = "bytes:";

}  // namespace

std::string as_utf8(std::string_view text) {
  if (is_utf8(text) && !text.starts_with(kMark)) return std::string(text);
  std::string out(kMark);
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    const bool is_kept = step.status == Utf8Status::kValid && text.front() != '%';
    for (const char byte : text.substr(0, step.length)) {
      out += is_kept ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
    }
    text.remove_prefix(step.length);
  }
  return out;
}

std::string from_utf8(std::string_view text) {
  if (!text.starts_with(kMark)) return std::string(text);
  text.remove_prefix(kMark.size());
  std::string out;
  while (!text.empty()) {
    unsigned char byte = 0;
    const std::string_view digits = text.substr(1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    const bool is_byte =
        text.front() == '%' && digits.size() == 2 && error == std::errc() && end == digits.data() + digits.size();
    out += is_byte ? static_cast<char>(byte) : text.front();
    text.remove_prefix(is_byte ? 3 : 1);
  }
  return out;
}

}  // namespace teratron

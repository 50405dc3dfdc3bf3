#include "tokenizer/bpe/byte_alphabet.h"

#include "base/utf8.h"

namespace teratron {
namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

constexpr std::array<std::uint16_t, 256> make_characters() {
  std::array<std::uint16_t, 256> characters{};
  std::uint16_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    characters[byte] = is_printable(byte) ? static_cast<std::uint16_t>(byte) : next++;
  }
  return characters;
}

constexpr std::array<std::uint16_t, 256> kCharacters = make_characters();
constexpr std::size_t kStandIns = 68;

// Character -> byte + 1; 0 if the character stands for no byte.
constexpr std::array<std::uint16_t, 0x100 + kStandIns> make_bytes() {
  std::array<std::uint16_t, 0x100 + kStandIns> bytes{};
  for (unsigned byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = static_cast<std::uint16_t>(byte + 1);
  return bytes;
}

constexpr auto kBytes = make_bytes();

}  // namespace

std::array<std::uint8_t, 256> bytes_in_alphabet_order() {
  std::array<std::uint8_t, 256> order{};
  std::size_t count = 0;
  for (const std::uint16_t byte : kBytes) {
    if (byte != 0) order[count++] = static_cast<std::uint8_t>(byte - 1);
  }
  return order;
}

std::string to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(kCharacters[static_cast<std::uint8_t>(byte)], text);
  return text;
}

std::optional<std::string> from_alphabet(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const Utf8Step step = decode_utf8(text);
    if (step.status != Utf8Status::kValid || step.code >= kBytes.size() || kBytes[step.code] == 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[step.code] - 1));
    text.remove_prefix(step.length);
  }
  return bytes;
}

}  // namespace teratron

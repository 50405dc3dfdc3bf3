// GPT-2's files write tokens, which are bytes, as printable text: each byte has its own character. The 188 printable
// bytes of Latin-1 stand for themselves, the other 68 (controls, spaces, the soft hyphen) for U+0100, U+0101, ... in
// order, so that a space is "\u0120".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace teratron {

// The bytes in the order of their characters, which is the order of GPT-2's first 256 ids.
std::array<std::uint8_t, 256> bytes_in_alphabet_order();

std::string to_alphabet(std::string_view bytes);

// The bytes that `text` stands for; empty if it has a character outside the alphabet or is not UTF-8.
std::optional<std::string> from_alphabet(std::string_view text);

}  // namespace teratron

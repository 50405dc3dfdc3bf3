// UTF-8 that suffered while it was taken for another encoding: bytes A0 that became spaces, bytes that were lost.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// Stands for a byte that was shown as U+FFFD, and is not known.
inline constexpr char kLostByte = 0x1A;

// With the byte A0 in place of a space where that makes a likely character of two to four bytes: "\xC3 " is "\u00E0",
// which keeps the space too where it is a word of its own.
std::string with_spaces_restored(std::string_view bytes);

// With U+FFFD in place of each sequence that has lost bytes.
std::string with_losses_shown(std::string_view bytes);

}  // namespace teratron

// Bytes as text in base64 (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace teratron {

// With padding.
std::string base64_of(std::string_view bytes);
// Decodes padded base64; nullopt: `text` is not base64.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace teratron

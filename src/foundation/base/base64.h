// Bytes as text in base64 (RFC 4648, section 4).
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// With padding.
std::string base64_of(std::string_view bytes);

}  // namespace teratron

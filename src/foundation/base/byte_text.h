// Text of any bytes in files that hold UTF-8 alone, as TOML and JSON do. On Linux a path is bytes.
#pragma once

#include <string>
#include <string_view>

namespace teratron {

// The same where it is UTF-8. Else "bytes:" and the text with %XX for each byte that is not, and for "%":
// "bytes:/data/caf%E9". Text that itself begins with "bytes:" is written so too.
std::string as_utf8(std::string_view text);

// The inverse. Text of other programs that begins with "bytes:" keeps each "%" that no two hexadecimal digits follow.
std::string from_utf8(std::string_view text);

}  // namespace teratron

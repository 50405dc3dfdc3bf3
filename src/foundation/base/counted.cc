#include "base/counted.h"

#include <fmt/format.h>

namespace teratron {

std::string readable_integer(std::int64_t integer) {
  const std::string plain = fmt::format("{}", integer);
  std::string text;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const bool after_digit = i > 0 && plain[i - 1] != '-';
    if (after_digit && (plain.size() - i) % 3 == 0) text += ',';
    text += plain[i];
  }
  return text;
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  const std::string noun = count == 1 ? std::string(one) : many.empty() ? fmt::format("{}s", one) : std::string(many);
  return fmt::format("{} {}", readable_integer(count), noun);
}

}  // namespace teratron

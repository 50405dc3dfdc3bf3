#include "pipeline/token_slices.h"

#include <charconv>

#include "base/error.h"

namespace teratron::pipeline {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 24;  // tokens, or slices

}  // namespace

TokenSlices parse_token_slices(std::string_view flag, std::string_view text) {
  if (text == "auto") return {.automatic = true};
  constexpr std::string_view kUniform = "uniform:";
  const bool uniform = text.starts_with(kUniform);
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = uniform ? kUniform.size() : 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, number);
    const bool is_number = error == std::errc() && stop == text.data() + end && number >= 1 && number <= kMost;
    if (!is_number || (uniform && end != text.size())) {
      throw_user_error(
          "{} is '{}'; it must be a number of slices, such as uniform:4, their lengths in tokens, such as 704,688,656, "
          "or auto",
          flag, text);
    }
    numbers.push_back(number);
    begin = end + 1;
  }
  if (numbers.size() == 1) return {.count = static_cast<int>(numbers.front())};
  const int count = static_cast<int>(numbers.size());
  return {.count = count, .lengths = std::move(numbers)};
}

std::vector<std::int64_t> even_slices(std::int64_t tokens, int count) {
  if (tokens < count)
    throw_user_error("{} tokens cannot be cut into {} slices; use {} or fewer", tokens, count, tokens);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), tokens / count);
  for (std::int64_t i = 0; i < tokens % count; ++i) ++lengths[static_cast<std::size_t>(i)];
  return lengths;
}

}  // namespace teratron::pipeline

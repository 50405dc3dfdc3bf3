#include "pipeline/token_slices.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/error.h"

namespace teratron::pipeline {
namespace {

constexpr std::string_view kUniform = "uniform:", kDocuments = "documents:";
constexpr std::int64_t kMost = std::int64_t{1} << 24;  // tokens, or slices

// The parts between separators; of an empty text one empty part.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Number in a text; none unless it is from 1 to kMost.
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && stop == text.data() + text.size() && number >= 1 && number <= kMost;
  return is_number ? std::optional(number) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const std::string_view part : split(text, ',')) {
    const std::optional<std::int64_t> number = number_in(part);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// "2x512,512+1x1024"
std::optional<std::vector<MicroBatchCut>> cuts_in(std::string_view text) {
  std::vector<MicroBatchCut> cuts;
  for (const std::string_view part : split(text, '+')) {
    const std::size_t x = part.find('x');
    if (x == part.npos) return std::nullopt;
    const std::optional<std::int64_t> sequences = number_in(part.substr(0, x));
    std::optional<std::vector<std::int64_t>> lengths = numbers_in(part.substr(x + 1));
    if (!sequences || !lengths) return std::nullopt;
    cuts.push_back({.sequences = *sequences, .slice_tokens = std::move(*lengths)});
  }
  return cuts;
}

std::optional<TokenSlices> slices_in(std::string_view text) {
  if (text.find('x') != text.npos) {
    std::optional<std::vector<MicroBatchCut>> cuts = cuts_in(text);
    if (!cuts) return std::nullopt;
    TokenSlices slices{.cuts = std::move(*cuts)};
    slices.count = std::ranges::max(slices.slices_each());
    return slices;
  }
  for (const std::string_view kind : {kUniform, kDocuments}) {
    if (!text.starts_with(kind)) continue;
    const std::optional<std::int64_t> count = number_in(text.substr(kind.size()));
    if (!count) return std::nullopt;
    return TokenSlices{.by_documents = kind == kDocuments, .count = static_cast<int>(*count)};
  }
  std::optional<std::vector<std::int64_t>> lengths = numbers_in(text);
  if (!lengths) return std::nullopt;
  if (lengths->size() == 1) return TokenSlices{.count = static_cast<int>(lengths->front())};
  return TokenSlices{.count = static_cast<int>(lengths->size()), .lengths = std::move(*lengths)};
}

}  // namespace

std::vector<int> TokenSlices::slices_each() const {
  std::vector<int> slices;
  for (const MicroBatchCut& cut : cuts) slices.push_back(static_cast<int>(cut.slice_tokens.size()));
  return slices;
}

TokenSlices parse_token_slices(std::string_view flag, std::string_view text, SliceForms forms) {
  if (text == "auto" || text == "joint") return {.automatic = true, .joint = text == "joint"};
  const std::optional<TokenSlices> slices = slices_in(text);
  if (!slices) {
    const bool all = forms == SliceForms::kAll;
    throw_user_error(
        "{} is '{}'; it must be a number of slices, such as uniform:4{}, their lengths in tokens, such as 704,688,656, "
        "those of several micro-batches, such as 2x512,512+1x1024, {}; numbers are from 1 to {}",
        flag, text, all ? " or documents:4" : "", all ? "auto, or joint" : "or auto", kMost);
  }
  for (const MicroBatchCut& cut : slices->cuts) {
    if (cut.sequences <= slices->cuts.front().sequences) continue;
    throw_user_error("{} {} has a micro-batch of {} sequences after one of {}; put the one with the most first", flag,
                     text, cut.sequences, slices->cuts.front().sequences);
  }
  return *slices;
}

std::string text_of(std::span<const MicroBatchCut> cuts) {
  std::vector<std::string> parts;
  for (const MicroBatchCut& cut : cuts) {
    parts.push_back(fmt::format("{}x{}", cut.sequences, fmt::join(cut.slice_tokens, ",")));
  }
  return fmt::format("{}", fmt::join(parts, "+"));
}

std::vector<std::int64_t> even_slices(std::int64_t tokens, int count) {
  if (tokens < count)
    throw_user_error("{} tokens cannot be cut into {} slices; use {} or fewer", tokens, count, tokens);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(count), tokens / count);
  for (std::int64_t i = 0; i < tokens % count; ++i) ++lengths[static_cast<std::size_t>(i)];
  return lengths;
}

}  // namespace teratron::pipeline

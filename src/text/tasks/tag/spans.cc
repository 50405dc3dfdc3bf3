#include "tasks/tag/spans.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace teratron::tag {
namespace {

struct NamedPart {
  Part part;
  std::string_view type;
};

// Part and type that a label's name stands for; nullopt: the name has another form.
std::optional<NamedPart> part_of(std::string_view name) {
  if (name == "O") return NamedPart{.part = Part::kOutside, .type = {}};
  constexpr std::string_view kParts = "BIES";
  if (name.empty() || kParts.find(name.front()) == std::string_view::npos) return std::nullopt;
  const std::string_view type = name.substr(1);
  if (!type.empty() && type.front() != '-') return std::nullopt;
  return NamedPart{.part = static_cast<Part>(name.front()), .type = type.size() < 2 ? "_" : type.substr(1)};
}

bool ends_with_itself(Part part) { return part == Part::kEnd || part == Part::kSingle; }

}  // namespace

SpanLabels::SpanLabels(std::span<const std::string> names) {
  for (const std::string& name : names) {
    const std::optional<NamedPart> named = part_of(name);
    are_spans_ = are_spans_ && named;
    if (named && !named->type.empty()) types_.emplace_back(named->type);
  }
  if (!are_spans_) types_.clear();
  if (!are_spans_) return;
  std::ranges::sort(types_);
  types_.erase(std::ranges::unique(types_).begin(), types_.end());
  for (const std::string& name : names) {
    const NamedPart named = *part_of(name);
    const auto type = std::ranges::lower_bound(types_, named.type) - types_.begin();
    labels_.push_back({.part = named.part, .type = named.type.empty() ? -1 : static_cast<std::int32_t>(type)});
  }
}

std::vector<Span> SpanLabels::spans_in(std::span<const std::int32_t> labels) const {
  check(are_spans_, "labels of spans");
  std::vector<Span> spans;
  Label before;
  for (std::size_t word = 0; word < labels.size(); ++word) {
    const Label here = labels_.at(static_cast<std::size_t>(labels[word]));
    const auto index = static_cast<std::int64_t>(word);
    const bool goes_on = (here.part == Part::kInside || here.part == Part::kEnd) && here.type == before.type &&
                         before.part != Part::kOutside && !ends_with_itself(before.part);
    if (goes_on) {
      spans.back().end = index + 1;
    } else if (here.part != Part::kOutside) {
      spans.push_back({.begin = index, .end = index + 1, .type = here.type});
    }
    before = here;
  }
  return spans;
}

void SpanScores::add(std::span<const Span> labelled, std::span<const Span> said) {
  const auto count = [&](const Span& span, std::int64_t SpanCounts::*number) {
    ++(all.*number);
    ++(by_type.at(static_cast<std::size_t>(span.type)).*number);
  };
  for (const Span& span : labelled) count(span, &SpanCounts::labelled);
  for (const Span& span : said) {
    count(span, &SpanCounts::said);
    if (std::ranges::binary_search(labelled, span)) count(span, &SpanCounts::right);
  }
}

}  // namespace teratron::tag

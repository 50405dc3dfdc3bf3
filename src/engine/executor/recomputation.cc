#include "executor/recomputation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"

namespace teratron {
namespace {

constexpr std::array kKinds = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};

// Takes "MARK number" off the begin of a text. False: the mark is there, and no number from 1 on follows.
bool take_number(std::string_view& text, char mark, std::int64_t& number) {
  if (!text.starts_with(mark)) return true;
  const auto [stop, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return error == std::errc() && number >= 1;
}

std::optional<StageRecompute> parse_stage(std::string_view text) {
  const auto kind = std::ranges::find(kKinds, text.substr(0, text.find_first_of(":@")),
                                      [](Recompute one) { return std::string_view(name_of(one)); });
  if (kind == kKinds.end()) return std::nullopt;
  StageRecompute stage{.kind = *kind};
  text.remove_prefix(std::string_view(name_of(*kind)).size());
  if (*kind == Recompute::kNone && !text.empty()) return std::nullopt;
  if (!take_number(text, ':', stage.layers) || !take_number(text, '@', stage.slices) || !text.empty()) {
    return std::nullopt;
  }
  return stage;
}

}  // namespace

const char* name_of(Recompute kind) {
  switch (kind) {
    case Recompute::kNone: return "none";
    case Recompute::kSelective: return "selective";
    case Recompute::kFull: return "full";
  }
  throw InternalError("a kind of recompute");
}

Recompute StageRecompute::of(std::int64_t layer, std::int64_t slice) const {
  const bool is_kept = (layers > 0 && layer >= layers) || (slices > 0 && slice >= slices);
  return is_kept ? Recompute::kNone : kind;
}

std::int64_t StageRecompute::layers_of(std::int64_t cell_layers, std::int64_t slice) const {
  if (of(0, slice) == Recompute::kNone) return 0;
  return layers == 0 ? cell_layers : std::min(layers, cell_layers);
}

std::string StageRecompute::text() const {
  return fmt::format("{}{}{}", name_of(kind), layers > 0 ? fmt::format(":{}", layers) : "",
                     slices > 0 ? fmt::format("@{}", slices) : "");
}

Recomputation::Recomputation(Recompute kind) : Recomputation(std::vector{StageRecompute{.kind = kind}}) {}

Recomputation::Recomputation(std::vector<StageRecompute> stages) : stages_(std::move(stages)) {
  check(!stages_.empty(), "a recomputation of stages");
  if (std::ranges::count(stages_, stages_.front()) == std::ssize(stages_)) stages_.resize(1);
  if (stages_.size() == 1 && stages_.front().kind == Recompute::kNone) stages_.clear();
}

const StageRecompute& Recomputation::of(int stage) const {
  static constexpr StageRecompute kNothing;
  if (stages_.empty()) return kNothing;
  return differs() ? stages_.at(static_cast<std::size_t>(stage)) : stages_.front();
}

std::optional<Recompute> Recomputation::uniform() const {
  if (stages_.empty()) return Recompute::kNone;
  if (differs() || !stages_.front().is_whole()) return std::nullopt;
  return stages_.front().kind;
}

std::string Recomputation::text() const {
  if (stages_.empty()) return name_of(Recompute::kNone);
  std::vector<std::string> texts;
  for (const StageRecompute& stage : stages_) texts.push_back(stage.text());
  return fmt::format("{}", fmt::join(texts, ","));
}

std::optional<std::vector<StageRecompute>> parse_recompute(std::string_view text) {
  std::vector<StageRecompute> stages;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<StageRecompute> stage = parse_stage(text.substr(begin, end - begin));
    if (!stage) return std::nullopt;
    stages.push_back(*stage);
    begin = end + 1;
  }
  return stages;
}

}  // namespace teratron

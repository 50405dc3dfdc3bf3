#include "settings/split_settings.h"

#include <fmt/format.h>

#include "console/readable.h"

namespace teratron {

std::string SplitSettings::given_flags() const {
  std::string text;
  if (order == SplitOrder::kFile) text = "--split-order file";
  if (order == SplitOrder::kRandom) text = "--split-order random";
  if (seed != 0) text += fmt::format("{}--split-seed {}", text.empty() ? "" : " ", seed);
  return text;
}

SplitRule SplitSettings::rule(const std::optional<SplitRule>& recorded) const {
  if (order == SplitOrder::kFile) return kFileOrder;
  if (seed != 0) return {.seed = static_cast<std::uint64_t>(seed)};
  if (recorded && (recorded->seed || order == SplitOrder::kAuto)) return *recorded;
  return {.seed = static_cast<std::uint64_t>(kDefaultSplitSeed)};
}

Faults SplitSettings::faults() const {
  constexpr Flag kSplitSeed{"split-seed"};
  Faults faults;
  faults.add_if(parse_split(parts()).empty(),
                "{} \"{}\" is not a list of one to three weights for training, validation and test; write it as 29,1 "
                "or 969,30,1",
                Flag{"split"}, weights);
  faults.add_if(seed < 0, "{} is {}; it must be at least 0 (0: that of the checkpoint, else {})", kSplitSeed, seed,
                kDefaultSplitSeed);
  faults.add_if(order == SplitOrder::kFile && seed > 0,
                "{} {} has no effect with {} file, which draws nothing; leave one of them out", kSplitSeed, seed,
                Flag{"split-order"});
  return faults;
}

void add_split_fields(FieldList& list, SplitSettings& settings) {
  list.add("split", &settings.weights, "WEIGHTS", "shares of training, validation and test; by default 29,1");
  list.add_choice(
      "split-order", settings.order,
      {{"auto", SplitOrder::kAuto}, {"random", SplitOrder::kRandom}, {"file", SplitOrder::kFile}},
      "documents are drawn into the parts at random, or parts are consecutive; auto: as the checkpoint of --load was "
      "trained, else random");
  list.add("split-seed", &settings.seed, "N",
           fmt::format("seed of that draw, apart from --seed; 0: that of the checkpoint of --load, else {}",
                       kDefaultSplitSeed));
}

std::string text_of(const SplitRule& rule) {
  return rule.seed ? fmt::format("--split-order random --split-seed {}", *rule.seed) : "--split-order file";
}

std::string describe(const std::vector<CorpusPart>& parts, const SplitRule& rule) {
  std::string text;
  for (const CorpusPart& part : parts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", part.name, counted(part.documents(), "document"));
  }
  const bool by_position = rule.seed && !parts.front().drawn;
  return fmt::format("split by {}{}: {}", text_of(rule),
                     by_position ? ", but by token position, as documents are fewer than parts" : "", text);
}

}  // namespace teratron

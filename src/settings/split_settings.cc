#include "settings/split_settings.h"

#include <fmt/format.h>

#include "base/error.h"
#include "console/readable.h"

namespace teratron {
namespace {

// In a checkpoint's training state; absent: in file order.
constexpr const char* kSplitSeedCounter = "split_seed";

// The flags that were given.
std::string given_flags(const SplitSettings& settings) {
  std::string text;
  if (settings.order == SplitOrder::kFile) text = "--split-order file";
  if (settings.order == SplitOrder::kRandom) text = "--split-order random";
  if (settings.seed != 0) text += fmt::format("{}--split-seed {}", text.empty() ? "" : " ", settings.seed);
  return text;
}

// What the flags say, and where they say nothing what the checkpoint says.
SplitRule chosen_split(const SplitSettings& settings, const std::optional<SplitRule>& recorded) {
  if (settings.order == SplitOrder::kFile) return kFileOrder;
  if (settings.seed != 0) return {.seed = static_cast<std::uint64_t>(settings.seed)};
  if (recorded && (recorded->seed || settings.order == SplitOrder::kAuto)) return *recorded;
  return {.seed = static_cast<std::uint64_t>(kDefaultSplitSeed)};
}

}  // namespace

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
      "documents are drawn into the parts at random, or parts are runs of the file; auto: as the checkpoint "
      "of --load was trained, else random");
  list.add(
      "split-seed", &settings.seed, "N",
      fmt::format("of that draw, whatever --seed is; 0: that of the checkpoint of --load, else {}", kDefaultSplitSeed));
}

std::optional<SplitRule> recorded_split(const TrainingState& state) {
  if (state.iteration == 0) return std::nullopt;
  const auto seed = state.counters.find(kSplitSeedCounter);
  if (seed == state.counters.end()) return kFileOrder;
  return SplitRule{.seed = static_cast<std::uint64_t>(seed->second)};
}

void record_split(const SplitRule& rule, TrainingState& state) {
  if (rule.seed) state.counters[kSplitSeedCounter] = static_cast<std::int64_t>(*rule.seed);
}

SplitRule training_split(const SplitSettings& settings, const std::filesystem::path& load) {
  if (load.empty()) return chosen_split(settings, std::nullopt);
  const std::optional<SplitRule> recorded = recorded_split(read_checkpoint_info(load).state);
  const SplitRule chosen = chosen_split(settings, recorded);
  if (recorded && chosen != *recorded && !settings.override_data) {
    throw_user_error(
        "'{}' was trained with {}, and now {} is given: training would go on with documents that were held out so far. "
        "Leave out --split-order and --split-seed to go on as it was trained; --override-data allows it",
        load.string(), text_of(*recorded), given_flags(settings));
  }
  return chosen;
}

SplitRule evaluation_split(const SplitSettings& settings, const TrainingState& state) {
  return chosen_split(settings, recorded_split(state));
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

#include "runtime/recorded_data.h"

#include "base/error.h"

namespace teratron {
namespace {

// Counters of a training state. An absent one means file order, or not set.
constexpr const char* kSplitSeed = "split_seed";
constexpr const char *kAttention = "reset_attention_mask", *kPositions = "reset_position_ids";

}  // namespace

std::optional<SplitRule> recorded_split(const TrainingState& state) {
  if (state.iteration == 0) return std::nullopt;
  const auto seed = state.counters.find(kSplitSeed);
  if (seed == state.counters.end()) return kFileOrder;
  return SplitRule{.seed = static_cast<std::uint64_t>(seed->second)};
}

void record_split(const SplitRule& rule, TrainingState& state) {
  if (rule.seed) state.counters[kSplitSeed] = static_cast<std::int64_t>(*rule.seed);
}

SplitRule training_split(const SplitSettings& settings, const std::filesystem::path& load) {
  if (load.empty()) return settings.rule();
  const std::optional<SplitRule> recorded = recorded_split(read_checkpoint_info(load).state);
  const SplitRule chosen = settings.rule(recorded);
  if (recorded && chosen != *recorded && !settings.override_data) {
    throw_user_error(
        "'{}' was trained with {}, and now {} is given: training would go on with documents that were held out so far. "
        "Leave out --split-order and --split-seed to go on as it was trained; --override-data allows it",
        load.string(), text_of(*recorded), settings.given_flags());
  }
  return chosen;
}

void record_documents(const DocumentSettings& settings, TrainingState& state) {
  if (settings.reset_attention_mask) state.counters[kAttention] = 1;
  if (settings.reset_position_ids) state.counters[kPositions] = 1;
}

DocumentOptions recorded_documents(const TrainingState& state, const Tokenizer& tokenizer) {
  const DocumentSettings settings{.reset_attention_mask = state.counter(kAttention) != 0,
                                  .reset_position_ids = state.counter(kPositions) != 0};
  return settings.options(tokenizer);
}

}  // namespace teratron

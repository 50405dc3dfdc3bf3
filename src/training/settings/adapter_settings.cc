#include "settings/adapter_settings.h"

#include <vector>

#include "base/error.h"
#include "model/adapters.h"
#include "model/family.h"

namespace teratron {
namespace {

constexpr Flag kRank{"lora-rank"}, kAlpha{"lora-alpha"}, kDropout{"lora-dropout"}, kTargets{"lora-targets"},
    kRankStabilized{"rslora"}, kFrozenWeights{"frozen-weights"};

std::vector<std::string> split_names(const std::string& names) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    all.push_back(names.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

}  // namespace

void add_adapter_fields(FieldList& list, AdapterConfig& adapters, std::string& targets, std::optional<DType>& frozen) {
  list.group("Adapters", FieldScope::kModel);
  list.add(std::string(kRank.name), &adapters.rank, "N",
           "train low-rank adapters of this rank (LoRA) beside the weights, which are frozen; 0: train the weights");
  list.add(std::string(kAlpha.name), &adapters.alpha, "X", "an adapter counts this over its rank");
  list.add(std::string(kDropout.name), &adapters.dropout, "P", "dropout of what adapters read");
  list.add(
      std::string(kTargets.name), &targets, "NAMES",
      "layers with an adapter, by commas, as PEFT names them (q_proj,v_proj; c_attn), or all-linear; none: those of "
      "queries and values");
  list.add(std::string(kRankStabilized.name), &adapters.rank_stabilized, "",
           "divide --lora-alpha by the root of the rank, not by the rank");
  list.add_choice(
          std::string(kFrozenWeights.name), frozen,
          {{"whole", std::nullopt}, {"q8_0", DType::kQ8Tile}, {"q4_0", DType::kQ4Tile}},
          "CPUs: frozen matrices and the token table, as they are loaded, in blocks of 32 values with one step, "
          "of 8 bits or of 4, as GGUF's; whole: in the precision of the others")
      .of(FieldScope::kRun);
}

void set_adapter_targets(ModelConfig& model, const std::string& names) {
  AdapterConfig& adapters = model.adapters;
  if (!adapters.active()) return;
  if (!names.empty()) {
    adapters.targets = adapter_targets(model, split_names(names));
  } else if (adapters.targets == 0) {
    constexpr unsigned kUsual = AdapterConfig::kQuery | AdapterConfig::kValue | AdapterConfig::kPacked;
    for (const AdapterTarget& target : model.family().adapter_targets) adapters.targets |= target.targets & kUsual;
  }
}

Faults frozen_weights_faults(const AdapterConfig& adapters, std::optional<DType> frozen) {
  Faults faults;
  faults.add_if(frozen && !adapters.active(), "{} is for weights beside adapters, and {} N, their rank, is missing",
                kFrozenWeights, kRank);
  return faults;
}

Faults adapter_faults(ModelConfig& model, const std::string& names) {
  Faults faults;
  const AdapterConfig& adapters = model.adapters;
  if (adapters.rank == 0) {
    const AdapterConfig usual;
    const auto needs_rank = [&](Flag flag, bool is_given) {
      faults.add_if(is_given, "{} is for adapters, and {} N, their rank, is missing", flag, kRank);
    };
    needs_rank(kAlpha, adapters.alpha != usual.alpha);
    needs_rank(kDropout, adapters.dropout != usual.dropout);
    needs_rank(kTargets, !names.empty());
    needs_rank(kRankStabilized, adapters.rank_stabilized);
    return faults;
  }
  try {
    set_adapter_targets(model, names);
  } catch (const UserError& error) {
    model.adapters.targets = AdapterConfig::kQuery;
    if (!model.family().adapter_targets.empty()) faults.add("{}: {}", kTargets, error.what());
  }
  return faults;
}

}  // namespace teratron

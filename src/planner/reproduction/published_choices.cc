#include "reproduction/published_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "reproduction/published_prediction.h"

namespace teratron::plan {
namespace {

// Published and predicted, in one unit: more is faster.
struct Speeds {
  const PublishedRun* run;
  double published, predicted;
};

std::optional<Speeds> speeds_of(const PublishedRun& run, const RunConstants& constants) {
  if (!run.tokens_per_second && !run.teraflops && !run.step_seconds) return std::nullopt;
  const double seconds = step_seconds_of(run, constants);
  if (run.tokens_per_second) return Speeds{&run, *run.tokens_per_second, tokens_per_second_of(run, seconds)};
  if (run.teraflops) return Speeds{&run, *run.teraflops, teraflops_of(run, seconds)};
  return Speeds{&run, 1 / *run.step_seconds, 1 / seconds};
}

// Text that is equal for runs that differ in their layout alone.
std::string question_of(const PublishedRun& run) {
  const ModelConfig& m = run.model;
  return fmt::format("{} {} {} {} {} {}, {} x {}, {} tokens, {} {} {} {}", run.program, m.num_layers, m.hidden_size,
                     m.num_attention_heads, m.intermediate_size, m.vocab_size, run.devices, run.cluster, run.tokens,
                     run.is_fp8, run.is_compiled, run.sums_in_fp32, run.step_seconds ? run.batch : 0);
}

// Runs that are predicted alike are one layout, measured twice: the faster of them.
const Speeds& chosen_of(std::span<const Speeds> speeds) {
  constexpr double kAlike = 1 - 1e-9;
  const double best = std::ranges::max(speeds, {}, &Speeds::predicted).predicted;
  return *std::ranges::max_element(
      speeds, {}, [best](const Speeds& one) { return one.predicted >= kAlike * best ? one.published : 0; });
}

}  // namespace

std::vector<LayoutChoice> choices_among(std::span<const PublishedRun> runs, const RunConstants& constants) {
  std::map<std::string, std::vector<Speeds>> layouts;
  for (const PublishedRun& run : runs) {
    if (const std::optional<Speeds> speeds = speeds_of(run, constants)) layouts[question_of(run)].push_back(*speeds);
  }
  std::vector<LayoutChoice> choices;
  for (const auto& [question, speeds] : layouts) {
    if (speeds.size() < 2) continue;
    const Speeds& chosen = chosen_of(speeds);
    const Speeds& fastest = *std::ranges::max_element(speeds, {}, &Speeds::published);
    choices.push_back({.layouts = speeds.size(),
                       .chosen = chosen.run->name,
                       .fastest = fastest.run->name,
                       .lost = 1 - chosen.published / fastest.published});
  }
  std::ranges::stable_sort(choices, std::greater(), &LayoutChoice::lost);
  return choices;
}

}  // namespace teratron::plan
